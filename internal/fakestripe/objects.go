package fakestripe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// object is an object of Stripe's API. Members whose names begin with "_" are the fake's own. References are ids.
type object map[string]any

func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}

func (o object) number(name string) int64 {
	n, _ := o[name].(int64)
	return n
}

func (o object) flag(name string) bool {
	flag, _ := o[name].(bool)
	return flag
}

// clone returns a deep copy without the fake's own members, for answers and events.
func (o object) clone() object {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // an object contains JSON values only
	}
	var copied object
	if err := json.Unmarshal(text, &copied); err != nil {
		panic(err)
	}
	for name := range copied {
		if strings.HasPrefix(name, "_") {
			delete(copied, name)
		}
	}
	return copied
}

// prefixes of ids, by the type of the object.
var prefixes = map[string]string{
	"checkout.session": "cs", "payment_intent": "pi", "charge": "ch", "balance_transaction": "txn", "refund": "re",
	"dispute": "du", "webhook_endpoint": "we", "event": "evt", "subscription": "sub", "invoice": "in",
	"customer": "cus", "product": "prod", "price": "price", "billing_portal.session": "bps",
}

// store stores a new object of an account, and gives it an id, its type, mode and time.
func (s *state) store(a *account, kind string, o object) object {
	s.count++
	prefix := prefixes[kind] + "_"
	if kind == "checkout.session" {
		prefix += map[bool]string{false: "test_", true: "live_"}[a.live]
	}
	id := fmt.Sprintf("%s%08dFaKe%06x", prefix, s.count, s.random.IntN(1<<24))
	o["id"], o["object"], o["livemode"], o["created"] = id, kind, a.live, s.clock().Unix()
	o["_account"] = a.key
	if o["metadata"] == nil {
		o["metadata"] = map[string]string{}
	}
	s.objects[id] = o
	s.ids[kind] = append(s.ids[kind], id)
	return o
}

// of returns an object of an account; nil if the account has none with the id.
func (s *state) of(a *account, kind, id string) object {
	o := s.objects[id]
	if o == nil || o.text("object") != kind || o.text("_account") != a.key {
		return nil
	}
	return o
}

// render returns an object as an answer, with the references expanded that the request names.
func (s *state) render(o object, in input) object {
	answer := o.clone()
	for _, path := range in.list("expand") {
		if payments, is := o["_payments"].([]object); is && path == "payments" { // left out unless it is asked for
			answer["payments"] = object{"object": "list", "has_more": false, "data": payments}
			continue
		}
		s.expand(answer, strings.Split(path, "."))
	}
	return answer
}

func (s *state) expand(o object, path []string) {
	switch value := o[path[0]].(type) {
	case string:
		referred := s.objects[value]
		if referred == nil {
			return
		}
		expanded := referred.clone()
		o[path[0]] = expanded
		if len(path) > 1 {
			s.expand(expanded, path[1:])
		}
	case object:
		if len(path) > 1 {
			s.expand(value, path[1:])
		}
	}
}

// page answers a list, newest object first.
func (s *state) page(a *account, kind, path string, in input, filter func(object) bool) object {
	limit, _ := strconv.Atoi(in.text("limit"))
	if limit == 0 {
		limit = 10
	}
	data, started, more := []object{}, in.text("starting_after") == "", false
	for _, id := range slices.Backward(s.ids[kind]) {
		o := s.objects[id]
		if !started {
			started = id == in.text("starting_after")
			continue
		}
		if o.text("_account") != a.key || !filter(o) {
			continue
		}
		if len(data) == limit {
			more = true
			break
		}
		data = append(data, s.render(o, in))
	}
	return object{"object": "list", "url": path, "has_more": more, "data": data}
}

// input contains the parameters of a request, as Stripe's forms name them: line_items[0][price_data][currency].
type input map[string][]string

func (in input) text(name string) string {
	if values := in[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func (in input) number(name string) int64 {
	n, _ := strconv.ParseInt(in.text(name), 10, 64)
	return n
}

// list returns the values of an array: expand[0], expand[1], or expand[].
func (in input) list(name string) []string {
	all := slices.Clone(in[name+"[]"])
	for n := 0; ; n++ {
		value, given := in[fmt.Sprintf("%s[%d]", name, n)]
		if !given {
			return all
		}
		all = append(all, value...)
	}
}

// texts returns the members of a map: metadata[order_no].
func (in input) texts(name string) map[string]string {
	all := map[string]string{}
	for key, values := range in {
		if member, found := strings.CutPrefix(key, name+"["); found {
			all[strings.TrimSuffix(member, "]")] = values[0]
		}
	}
	return all
}
