"use strict";
// Adds a button to each command that copies the command. Without scripts, the commands can be selected.
for (const command of document.querySelectorAll(".command")) {
  const text = command.querySelector("pre");
  const button = document.createElement("button");
  button.type = "button";
  const say = (word) => {
    button.textContent = word;
    button.setAttribute("aria-label", word + ": " + text.getAttribute("aria-label"));
  };
  say("Copy");
  button.addEventListener("click", async () => {
    let copied = true;
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text.textContent + "\n").catch(() => { copied = false; });
    } else { // the page came over plain HTTP from another machine
      getSelection().selectAllChildren(text);
      copied = document.execCommand("copy");
    }
    say(copied ? "Copied" : "Failed");
    setTimeout(say, 2000, "Copy");
  });
  command.classList.add("copies");
  command.append(button);
}
