// Package docs renders the pages for people who use the API: the page at / of licet dev, the API reference at /docs,
// and the meaning of each error code at /docs/errors. It also contains the icon of all pages and robots.txt.
//
// The pages load nothing from other servers. The reference is drawn by openapi-explorer, a program that runs in the
// browser, from the API document of the service. The folder viewer has this program as published on npm, and the
// licenses of all packages in it; see docs/decisions/0029-api-reference-in-the-browser.md. The other pages work without
// scripts. The package knows no HTTP: the caller sets status and headers.
//
// Files:
//
//   - docs.go: the pages, and their Content-Security-Policies
//   - errors.go: the error codes
//   - errors.json: the error codes and their meanings; make openapi writes the file
//   - page.html.tmpl: the frame of all pages but the reference; home.html.tmpl, errors.html.tmpl, reference.html.tmpl
//   - style.css: the style, with the colors of the pay page; reference.css: the style of the reference
//   - copy.js: the buttons that copy commands; reference.js: repairs of the viewer
//   - favicon.ico, robots.txt
package docs
