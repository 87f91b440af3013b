package handlers

import (
	"bytes"
	"compress/gzip"
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"licet/docs/reference"
	"licet/handlers/docs"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// docsRoutes are the functions of the routes of the API document, and of the pages for people who use the API. They
// need no API key: these files are public, and cost no request to the store. Every response shares the same bytes.
type docsRoutes struct{ *Server }

const (
	mediaTypeYAML   = "application/yaml"
	mediaTypeJSON   = "application/json"
	mediaTypeHTML   = "text/html"
	mediaTypeScript = "text/javascript"
	mediaTypeIcon   = "image/vnd.microsoft.icon"
	mediaTypePlain  = "text/plain"
	inUTF8          = "; charset=utf-8"

	forHour = "public, max-age=3600"
	// forever is for an address with a version.
	forever = "public, max-age=31536000, immutable"
)

// staticFile is a file that all responses share.
type staticFile struct {
	media   string
	text    func() []byte
	packed  func() []byte // with gzip; the first call compresses the text
	headers []header
}

func newStaticFile(media, caching string, text func() []byte) staticFile {
	once := sync.OnceValue(text)
	return staticFile{
		media: media, text: once, packed: sync.OnceValue(func() []byte { return pack(once()) }),
		headers: []header{{fasthttp.HeaderCacheControl, caching}},
	}
}

// newStaticPage returns the file of a page. A page that can't be rendered is a bug, which tests find.
func newStaticPage(render func() (docs.Page, error)) staticFile {
	page, err := render()
	if err != nil {
		panic(err)
	}
	f := newStaticFile(contentTypeHTML, forHour, func() []byte { return page.HTML })
	f.headers = append(f.headers, docsHeaders(page.Policy)...)
	return f
}

// docsHeaders returns the additional headers of a page.
func docsHeaders(policy string) []header {
	return append(pageHeaders(), header{fasthttp.HeaderContentSecurityPolicy, policy})
}

func pack(text []byte) []byte {
	var packed bytes.Buffer
	to, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = to.Write(text)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		panic(err) // the level is valid, and a buffer takes everything
	}
	return packed.Bytes()
}

// answer returns the response with a file, in the encoding that the client accepts.
func (f *staticFile) answer(c *call) (document, error) {
	answer := document{
		status: fasthttp.StatusOK, contentType: f.media,
		headers: append([]header{{fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding}}, f.headers...),
	}
	if c.fast.Request.Header.HasAcceptEncoding("gzip") {
		answer.body = f.packed()
		answer.headers = append(answer.headers, header{fasthttp.HeaderContentEncoding, "gzip"})
	} else {
		answer.body = f.text()
	}
	return answer, nil
}

// files are the static files of a server.
type files struct {
	inYAML, inJSON, icon, robots  staticFile
	reference, errorCodes, viewer staticFile // only with Config.Docs
}

func newFiles(pages *docs.Renderer, withDocs bool) *files {
	f := &files{
		inYAML: newStaticFile(mediaTypeYAML, forHour, reference.OpenAPI),
		inJSON: newStaticFile(mediaTypeJSON, forHour, reference.OpenAPIInJSON),
		icon:   newStaticFile(mediaTypeIcon, forHour, docs.Icon),
		robots: newStaticFile(mediaTypePlain+inUTF8, forHour, docs.Robots),
	}
	if withDocs {
		f.reference, f.errorCodes = newStaticPage(pages.Reference), newStaticPage(pages.Errors)
		f.viewer = newStaticFile(mediaTypeScript+inUTF8, forever, docs.Viewer)
	}
	return f
}

// inYAML answers the API document in YAML.
func (s docsRoutes) inYAML(_ context.Context, c *call, _ noInput) (document, error) {
	return s.files.inYAML.answer(c)
}

// inJSON answers the API document in JSON.
func (s docsRoutes) inJSON(_ context.Context, c *call, _ noInput) (document, error) {
	return s.files.inJSON.answer(c)
}

func (s docsRoutes) icon(_ context.Context, c *call, _ noInput) (document, error) {
	return s.files.icon.answer(c)
}

func (s docsRoutes) robots(_ context.Context, c *call, _ noInput) (document, error) {
	return s.files.robots.answer(c)
}

// reference answers the API reference.
func (s docsRoutes) reference(_ context.Context, c *call, _ noInput) (document, error) {
	return s.files.reference.answer(c)
}

// viewer answers the script that draws the API reference.
func (s docsRoutes) viewer(_ context.Context, c *call, _ noInput) (document, error) {
	return s.files.viewer.answer(c)
}

// errorCodes answers the page about the error codes.
func (s docsRoutes) errorCodes(_ context.Context, c *call, _ noInput) (document, error) {
	return s.files.errorCodes.answer(c)
}

// docsURL returns the address of the section about an error code, relative to the public URL; empty if the server has
// no such page.
func (s *Server) docsURL(code int) string {
	if !s.cfg.Docs {
		return ""
	}
	return s.basePath + docs.ErrorsPath + "#" + strconv.Itoa(code)
}

// Home is the page at /, for the user of a server on the user's own machine.
type Home struct {
	docs.Home
	Owner licensing.Owner // of the latest order
	// Private says that only this machine reaches the server. Otherwise the page names neither a file nor a pay page,
	// whose address is a secret.
	Private bool
}

// home answers the page at /. It names the latest order that waits for payment, unless the store fails.
func (s docsRoutes) home(ctx context.Context, c *call, _ noInput) (document, error) {
	shown := s.cfg.Home.Home
	if s.cfg.Home.Private && fromThisMachine(c) {
		unpaid := service.OrderFilter{Status: licensing.OrderUnpaid}
		latest, err := s.cfg.Node.ListOrders(ctx, s.cfg.Home.Owner, unpaid, store.Page{Limit: 1})
		if err == nil && len(latest.Items) > 0 {
			if link := s.payLinks.of(&latest.Items[0]); link != nil {
				shown.Order, shown.PayURL = latest.Items[0].OrderNo, *link
			}
		}
	} else {
		shown.EnvFile, shown.ReadEnv = "", ""
	}
	page, err := s.docs.Home(shown)
	if err != nil {
		return document{}, err
	}
	return document{
		status: fasthttp.StatusOK, contentType: contentTypeHTML, body: page.HTML, headers: docsHeaders(page.Policy),
	}, nil
}

// fromThisMachine reports whether a request names this machine as the host, and no proxy. A page of another site can
// make its name an address of this machine (DNS rebinding), but requests of the page keep the name.
func fromThisMachine(c *call) bool {
	if len(c.fast.Request.Header.Peek(fasthttp.HeaderXForwardedFor)) > 0 {
		return false
	}
	host := string(c.fast.Request.Header.Host())
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
