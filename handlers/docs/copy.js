"use strict";
// Adds a button to each command that copies the command. Without scripts, the commands can be selected.
for (const command of document.querySelectorAll(".command")) {
  const text = command.querySelector("pre");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy: " + text.getAttribute("aria-label"));
  button.addEventListener("click", async () => {
    let copied = true;
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text.textContent + "\n").catch(() => { copied = false; });
    } else { // the page came over plain HTTP from another machine
      getSelection().selectAllChildren(text);
      copied = document.execCommand("copy");
    }
    button.textContent = copied ? "Copied" : "Failed";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  command.classList.add("copies");
  command.append(button);
}
