"use strict";
// Loads the API document into the viewer, without the headers of signatures, which a browser can't make.
const signature = ["Signature-Input", "Signature", "Content-Digest"].map((name) => `#/components/parameters/${name}`);
const explorer = document.querySelector("openapi-explorer");
const sheet = new CSSStyleSheet();
sheet.replaceSync(document.querySelector("template").innerHTML);
customElements.whenDefined("openapi-explorer").then(async () => {
  explorer.shadowRoot.adoptedStyleSheets = [...explorer.shadowRoot.adoptedStyleSheets, sheet];
  const response = await fetch(explorer.dataset.document);
  const api = await response.json();
  for (const path of Object.values(api.paths)) {
    for (const operation of Object.values(path)) {
      operation.parameters = operation.parameters?.filter((p) => !signature.includes(p.$ref));
    }
  }
  await explorer.loadSpec(api);
});
