package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/node/store"
)

// The log of an endpoint's deliveries is stored in pages, one for each checkpoint with deliveries. A page exists while
// the endpoint's progress lists the page.
const (
	// MaxPages and maxLogged bound the pages of an endpoint: at most MaxPages, and none older than the pages that
	// together contain maxLogged deliveries.
	MaxPages  = 100
	maxLogged = 1000
	// pageBytes is the largest size of a page. PagesOf cuts the answers of receivers before it begins another page.
	pageBytes = 64 << 10
)

// DeliveryLog lists the pages of an endpoint.
type DeliveryLog struct {
	First  uint64 // the number of the oldest page
	Counts []int  // of deliveries in each page, the oldest first
}

// Next returns the number of the next page.
func (l *DeliveryLog) Next() uint64 { return l.First + uint64(len(l.Counts)) }

// With returns the log with one more page at its end. It drops the oldest pages that exceed the bounds: those before
// the First of the returned log.
func (l *DeliveryLog) With(count int) DeliveryLog {
	longer := DeliveryLog{First: l.First, Counts: append(append([]int(nil), l.Counts...), count)}
	total := 0
	for _, n := range longer.Counts {
		total += n
	}
	for len(longer.Counts) > MaxPages || total-longer.Counts[0] >= maxLogged {
		total -= longer.Counts[0]
		longer.First, longer.Counts = longer.First+1, longer.Counts[1:]
	}
	return longer
}

// Field numbers of a page.
const (
	pageDelivery protowire.Number = 1 // repeated
	pageAnswer   protowire.Number = 2 // repeated: the answers that deliveries refer to
)

// loggedTable lists the fields of a delivery in a page. answer is the place of the delivery's answer, from 1; 0: none.
func loggedTable(d *store.Delivery, answer *uint64) fieldTable {
	return fieldTable{
		textField(1, &d.EventID),
		textField(2, &d.Type),
		attemptsField(3, &d.Attempts),
		numberField(4, answer),
	}
}

// LoggedPage is the value of a page, and how many deliveries the page contains.
type LoggedPage struct {
	Value []byte
	Count int
}

// PagesOf encodes deliveries into pages, mostly into one. Receivers mostly send the same answer, so a page has each
// answer once. A page that is still too large contains shorter answers.
func PagesOf(delivered []store.Delivery) []LoggedPage {
	if len(delivered) == 0 {
		return nil
	}
	if len(delivered) <= maxLogged {
		for most := maxAnswer; ; most /= 4 {
			value := encodePage(delivered, most)
			if len(value) <= pageBytes || len(delivered) == 1 && most == 0 {
				return []LoggedPage{{value, len(delivered)}}
			}
			if most == 0 {
				break
			}
		}
	}
	half := len(delivered) / 2
	return append(PagesOf(delivered[:half]), PagesOf(delivered[half:])...)
}

// encodePage returns the value of a page, with at most longest bytes of each answer.
func encodePage(delivered []store.Delivery, longest int) []byte {
	b := []byte{formatVersion}
	var answers []string
	places := make(map[string]uint64)
	var d store.Delivery
	var place uint64
	table := loggedTable(&d, &place)
	for _, d = range delivered {
		text := cutText(d.Answer, longest)
		if text != "" && places[text] == 0 {
			answers = append(answers, text)
			places[text] = uint64(len(answers))
		}
		place = places[text]
		b = appendMessage(b, pageDelivery, table)
	}
	for _, text := range answers {
		b = appendString(b, pageAnswer, text)
	}
	return b
}

// DecodePage decodes a page of a delivery log.
func DecodePage(value []byte) ([]store.Delivery, error) {
	var delivered []store.Delivery
	var answers []string
	var places []uint64 // of the deliveries' answers
	var d store.Delivery
	var place uint64
	table := loggedTable(&d, &place)
	err := DecodeValue(value, func(f Field) error {
		switch f.Num {
		case pageDelivery:
			d, place = store.Delivery{Status: store.DeliveryDelivered}, 0
			err := decodeMessage(f.Bytes, table.read)
			if err == nil && d.EventID == "" {
				err = ErrMalformed
			}
			delivered, places = append(delivered, d), append(places, place)
			return err
		case pageAnswer:
			answers = append(answers, f.string())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		if place > uint64(len(answers)) {
			return nil, ErrMalformed
		}
		if place > 0 {
			delivered[i].Answer = answers[place-1]
		}
	}
	return delivered, nil
}
