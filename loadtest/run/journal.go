package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// journal records what the service has acknowledged, and what the load has sent without an answer. lib/journal.js
// writes it.
type journal struct {
	lines    int
	wrong    []string // answers that failed a check
	licenses map[string]*licenseHistory
	orders   map[string]*orderHistory // by order number
	// keys are the Idempotency-Keys of orders. A key without an answer may have made an order
	// whose number is unknown.
	keys map[string]bool // answered
}

// licenseHistory is all that happened to one license.
type licenseHistory struct {
	account int // index of its API key
	devices map[string]*deviceHistory
	full    int // activations that were refused since all slots were taken
	leases  leases
}

// deviceHistory is all that happened to one device of one license.
type deviceHistory struct{ binds, removals []effect }

// effect is a request that changed something, or may have. It did so between begun and
// ended, in milliseconds since 1970.
type effect struct {
	client, line int // who asked, and where the journal says so
	begun, ended int64
	known        bool // it was acknowledged; else it may happen at any time
}

// surelyBefore reports whether e was over before other began: by the clock, or because one
// client sent one after the other.
func (e effect) surelyBefore(other effect) bool {
	return e.known && (e.ended < other.begun || e.client == other.client && e.line < other.line)
}

type orderHistory struct {
	account  int
	created  bool // it was acknowledged
	pays     []effect
	cancels  []effect
	licenses []string // that were seen on it
}

func newJournal() *journal {
	return &journal{licenses: map[string]*licenseHistory{}, orders: map[string]*orderHistory{}, keys: map[string]bool{}}
}

func (j *journal) license(key string) *licenseHistory {
	l := entry(j.licenses, key)
	if l.devices == nil {
		l.devices = map[string]*deviceHistory{}
	}
	return l
}

func (l *licenseHistory) device(id string) *deviceHistory { return entry(l.devices, id) }

func (j *journal) order(number string) *orderHistory { return entry(j.orders, number) }

// entry returns the entry of a name, and adds an empty entry if there is none.
func entry[T any](all map[string]*T, name string) *T {
	if all[name] == nil {
		all[name] = new(T)
	}
	return all[name]
}

// seed adds what was done before the load.
func (j *journal) seed(seeds []*seeded) {
	for i := range seeds {
		l := j.license(seeds[i].key)
		l.account = seeds[i].account
		for _, device := range seeds[i].bound {
			d := l.device(device)
			d.binds = append(d.binds, effect{known: true})
		}
	}
}

// readJournal reads the journal of a load that began with these licenses.
func readJournal(seeds []*seeded, out *results) (*journal, error) {
	j := newJournal()
	j.seed(seeds)
	file, err := os.Open(out.path("journal.txt"))
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer file.Close()
	return j, j.read(file)
}

// read adds what a load has written. An unknown line is an error: ignoring it could hide a
// lost result.
func (j *journal) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		j.lines++
		if err := j.add(strings.Fields(lines.Text())); err != nil {
			return fmt.Errorf("line %d of the journal: %w: %.200q", j.lines, err, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	return nil
}

func (j *journal) add(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("it is empty")
	}
	switch kind, rest := words[0], words[1:]; {
	case kind == "bind" && len(rest) == 6:
		l := j.license(rest[0])
		if rest[5] == "full" {
			l.full++
			return nil
		}
		d := l.device(rest[1])
		return j.appendEffect(&d.binds, rest[2:])
	case kind == "lease" && len(rest) == 7:
		return j.addLease(rest)
	case kind == "remove" && len(rest) == 6:
		d := j.license(rest[0]).device(rest[1])
		return j.appendEffect(&d.removals, rest[2:])
	case kind == "order" && len(rest) == 7:
		var made []effect
		if err := j.appendEffect(&made, rest[1:5]); err != nil {
			return err
		}
		j.keys[rest[0]] = j.keys[rest[0]] || made[0].known
		if made[0].known {
			o := j.order(rest[5])
			o.created = true
			var err error
			o.account, err = strconv.Atoi(rest[6])
			return err
		}
		return nil
	case kind == "pay" && len(rest) == 5:
		return j.appendEffect(&j.order(rest[0]).pays, rest[1:])
	case kind == "cancel" && len(rest) == 5:
		return j.appendEffect(&j.order(rest[0]).cancels, rest[1:])
	case kind == "wrong":
		j.wrong = append(j.wrong, strings.Join(rest, " "))
		return nil
	case kind == "paid" && len(rest) == 2:
		o := j.order(rest[0])
		o.licenses = append(o.licenses, rest[1])
		return nil
	}
	return fmt.Errorf("it has an unknown form")
}

// addLease reads license, device, client, begun, ended, outcome and for how many seconds a lease lasts.
func (j *journal) addLease(words []string) error {
	seconds, err := strconv.ParseInt(words[6], 10, 64)
	if err != nil {
		return err
	}
	one := lease{device: words[1], lastsFor: seconds * 1000}
	if one.full = words[5] == "full"; one.full {
		words[5] = "ok"
	}
	var sent []effect
	if err := j.appendEffect(&sent, words[2:6]); err != nil {
		return err
	}
	one.effect = sent[0]
	l := j.license(words[0])
	l.leases = append(l.leases, one)
	return nil
}

// appendEffect reads client, begun, ended and outcome.
func (j *journal) appendEffect(to *[]effect, words []string) error {
	var numbers [3]int64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseInt(words[i], 10, 64); err != nil {
			return err
		}
	}
	e := effect{client: int(numbers[0]), line: j.lines, begun: numbers[1], ended: numbers[2]}
	switch words[3] {
	case "ok":
		e.known = true
	case "unknown":
	default:
		return fmt.Errorf("no outcome %q", words[3])
	}
	*to = append(*to, e)
	return nil
}

// unanswered returns how many orders there may be whose number is unknown.
func (j *journal) unanswered() (n int) {
	for _, answered := range j.keys {
		if !answered {
			n++
		}
	}
	return n
}

// mayBeBound reports whether the device may be bound in the end: some request bound it, or
// may have, and no acknowledged removal certainly came later.
func (d *deviceHistory) mayBeBound() bool {
	for _, bind := range d.binds {
		removedLater := false
		for _, removal := range d.removals {
			removedLater = removedLater || removal.known && bind.surelyBefore(removal)
		}
		if !removedLater {
			return true
		}
	}
	return false
}

// mayBeFree reports whether the device may not be bound in the end: for each certain
// binding there is a removal that may have come later.
func (d *deviceHistory) mayBeFree() bool {
	for _, bind := range d.binds {
		mayNotHold := !bind.known
		for _, removal := range d.removals {
			mayNotHold = mayNotHold || !removal.surelyBefore(bind)
		}
		if !mayNotHold {
			return false
		}
	}
	return true
}
