// Command standin stands before a licet dev, and makes the receipts, sets of keys and lists of revocations that a test
// wants: forged ones, or those of another time. Everything else goes to the service and comes from it.
//
//	standin --listen ADDRESS --upstream URL --account ACCOUNT
//
// The first lines of output are variables for a shell. Tests post to /standin what shall happen, see [orders].
package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"licet/receipt"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "")
	upstream := flag.String("upstream", "", "")
	s := &standin{revisions: map[string]int64{}, epoch: 40,
		ordered: orders{Validity: 7 * 86400, MaxAge: 86400, KeysValidity: 90 * 86400}}
	flag.StringVar(&s.account, "account", "", "")
	flag.Parse()
	target, err := url.Parse(*upstream)
	if err != nil {
		log.Fatal(err)
	}
	s.upstream = strings.TrimSuffix(*upstream, "/")
	s.proxy = httputil.NewSingleHostReverseProxy(target)
	s.root = newKey()
	s.rotate()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("LICET_URL=http://%s\nLICET_ACCOUNT=%s\nLICET_ROOT=%s\n", listener.Addr(), s.account,
		receipt.FormatRoot(s.root.Public()))
	log.Fatal(http.Serve(listener, s))
}

// orders are what a test wants. A member that is left out stays as it is.
type orders struct {
	Offset       int64  `json:"offset"`        // of the clock, in seconds
	Validity     int64  `json:"validity"`      // of receipts
	KeysValidity int64  `json:"keys_validity"` // of sets of keys
	MaxAge       int64  `json:"max_age"`       // of lists
	Forge        string `json:"forge"`         // what is wrong: a receipt's nonce, device or key, the set or the list
	Seal         int64  `json:"seal"`          // part of the ETag of lists; 0: it changes with each max-age
	Rotate       bool   `json:"rotate"`        // makes a new receipt key, and forgets the one before the last
	VoidDevice   string `json:"void_device"`   // of the license below
	Void         string `json:"void"`          // a license key: its receipts until now are void
	Fail         []fail `json:"fail"`          // the next answers
}

type fail struct {
	Status     int    `json:"status"` // 0: the connection breaks; 100: none of these, but the service's
	RetryAfter string `json:"retry_after"`
	Location   string `json:"location"`
	Body       string `json:"body"`
}

type standin struct {
	upstream, account string
	proxy             *httputil.ReverseProxy
	root              *receipt.Signer

	mu        sync.Mutex
	ordered   orders
	keys      []*receipt.Signer // the last one signs
	keysSince int64
	revisions map[string]int64 // of licenses, by id
	epoch     int64
	entries   []entry
	issued    int
	requests  []string
}

type entry struct {
	epoch    int64
	name     [16]byte
	revision int64
}

func (s *standin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/standin" {
		s.order(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock() // one request after the other
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	if len(s.ordered.Fail) > 0 {
		next := s.ordered.Fail[0]
		s.ordered.Fail = s.ordered.Fail[1:]
		if next.Status != http.StatusContinue {
			io.Copy(io.Discard, r.Body) // an answer before the end of the request may break the connection
			next.answer(w)
			return
		}
	}
	documents := "/v1/accounts/" + s.account + "/test/"
	switch r.URL.Path {
	case "/v1/licenses/activate", "/v1/licenses/validate", "/v1/trials":
		s.license(w, r)
	case documents + "jwks.json":
		s.sendKeys(w)
	case documents + "revocations":
		s.sendList(w, r)
	default:
		s.proxy.ServeHTTP(w, r)
	}
}

func (f fail) answer(w http.ResponseWriter) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	for name, value := range map[string]string{"Retry-After": f.RetryAfter, "Location": f.Location} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(f.Status)
	io.WriteString(w, f.Body)
}

// order takes the orders of a test, and answers the requests since the last ones.
func (s *standin) order(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.ordered
	next.Rotate, next.Void, next.VoidDevice, next.Fail = false, "", "", nil
	if err := json.NewDecoder(r.Body).Decode(&next); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if next.Fail == nil {
		next.Fail = s.ordered.Fail
	}
	s.ordered = next
	if s.ordered.Rotate || s.keysSince > s.now() { // the clock is back from the future
		s.rotate()
	}
	if key := s.ordered.Void; key != "" {
		id := licenseID(key)
		s.epoch++
		s.entries = append(s.entries,
			entry{s.epoch, receipt.RevocationName(id, s.ordered.VoidDevice), s.revisions[id]})
		s.revisions[id]++
	}
	json.NewEncoder(w).Encode(s.requests)
	s.requests = nil
}

func newKey() *receipt.Signer {
	_, key, _ := ed25519.GenerateKey(nil)
	return receipt.NewSigner(key)
}

func (s *standin) rotate() {
	s.keys = append(s.keys[max(0, len(s.keys)-1):], newKey())
	s.keysSince = s.now()
}

func (s *standin) now() int64 { return time.Now().Unix() + s.ordered.Offset }

// licenseID returns an id for a license; the answers to activations and validations do not have the real one.
func licenseID(key string) string { return "lic_" + key }

// license asks the service, and adds a receipt to its answer.
func (s *standin) license(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Receipt bool   `json:"receipt"`
		Seconds int64  `json:"receipt_seconds"`
		Nonce   string `json:"nonce"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &asked) // the service refuses what is wrong
	status, text, err := s.ask(r.URL.Path, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	var answer struct {
		Data map[string]any `json:"data"`
	}
	_ = json.Unmarshal(text, &answer)
	if status/100 == 2 && asked.Receipt && answer.Data["valid"] != false {
		answer.Data["receipt"] = s.receipt(answer.Data, asked.Seconds, asked.Nonce)
		text, _ = json.Marshal(map[string]any{"code": 0, "message": "success", "data": answer.Data})
	}
	w.WriteHeader(status)
	w.Write(text)
}

// ask posts to the service.
func (s *standin) ask(path string, body []byte) (int, []byte, error) {
	response, err := http.Post(s.upstream+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

func (s *standin) receipt(data map[string]any, seconds int64, nonce string) string {
	text := func(name string) string { value, _ := data[name].(string); return value }
	id := licenseID(text("license_key"))
	s.revisions[id] = max(s.revisions[id], 1)
	s.issued++
	now, validity := s.now(), s.ordered.Validity
	if seconds > 0 {
		validity = min(validity, seconds)
	}
	devices, _ := data["max_devices"].(float64)
	r := receipt.Receipt{Issuer: s.upstream, LicenseID: id, ProductID: text("product_id"), IssuedAt: now, NotBefore: now,
		ExpiresAt: now + validity, ID: "rcp_" + strconv.Itoa(s.issued), AccountID: s.account, Mode: "test",
		DeviceID: text("device_id"), Status: text("status"), MaxDevices: int(devices), Trial: data["trial"] == true,
		Revision: s.revisions[id], RevocationsAge: s.ordered.MaxAge, Nonce: nonce,
		Entitlements: map[string]json.RawMessage{}}
	entitlements, _ := data["entitlements"].(map[string]any)
	for code, value := range entitlements {
		r.Entitlements[code], _ = json.Marshal(value)
	}
	if end := text("expires_at"); end != "" {
		r.LicenseEndsAt = &end
	}
	key := s.keys[len(s.keys)-1]
	switch s.ordered.Forge {
	case "nonce":
		r.Nonce = "another"
	case "device":
		r.DeviceID = "another"
	case "key":
		key = newKey()
	}
	document, _ := r.Sign(key)
	return document
}

func (s *standin) sendKeys(w http.ResponseWriter) {
	set := receipt.KeySet{Issuer: s.upstream, AccountID: s.account, Mode: "test", IssuedAt: s.keysSince,
		ExpiresAt: s.keysSince + s.ordered.KeysValidity}
	for _, key := range s.keys {
		set.Keys = append(set.Keys, receipt.NewJSONWebKey(key.Public()))
	}
	root := s.root
	if s.ordered.Forge == "set" {
		root = newKey()
	}
	signed, _ := set.Sign(root)
	json.NewEncoder(w).Encode(map[string]any{"keys": set.Keys, "signed": signed})
}

// sendList answers what came after an epoch, or the whole list.
func (s *standin) sendList(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	list := receipt.Revocations{Issuer: s.upstream, AccountID: s.account, Mode: "test", AsOf: s.now(), Epoch: s.epoch,
		After: after}
	names := map[[16]byte]int64{}
	for _, e := range s.entries {
		if e.epoch > after {
			names[e.name] = max(names[e.name], e.revision)
		}
	}
	compare := func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }
	for _, name := range slices.SortedFunc(maps.Keys(names), compare) {
		list.Entries = list.Entries.Append(name, names[name])
	}
	seal := s.ordered.Seal
	if seal == 0 {
		seal = s.now() / (s.ordered.MaxAge/2 + 1)
	}
	etag := fmt.Sprintf(`"%d-%d"`, s.epoch, seal)
	w.Header().Set("ETag", etag)
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", s.ordered.MaxAge/2))
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	key := s.keys[len(s.keys)-1]
	if s.ordered.Forge == "list" {
		key = newKey()
	}
	document, _ := list.Sign(key)
	w.Header().Set("Content-Type", "application/jose")
	io.WriteString(w, document)
}
