// Package paypage renders the pages that a customer sees: the pay page of an order, the result of an order, and the
// pages for errors.
//
// The pages are plain documents without scripts and external resources. So they show at once in any browser, are
// readable with curl, and allow the strictest Content-Security-Policy; see [Renderer.CSP]. The package knows no HTTP:
// the caller, handlers/pay.go, has the routes, the redirects and the headers. The pages need the referrer policy
// same-origin, so that the token in their address does not leak. The stricter no-referrer would also make browsers send
// "Origin: null" with our own form, as if another site had sent the form.
//
// Files:
//
//   - paypage.go: the pages and their texts, except about refused requests, which are in handlers/pay.go
//   - policy.go: the Content-Security-Policy, and which URLs of shops are safe
//   - page.html.tmpl: the frame of all pages, order.html.tmpl: the pay page, result.html.tmpl: all other pages
//   - palette.css: the colors, and style.css: the rest of the style, which every page embeds
package paypage
