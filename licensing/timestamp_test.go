package licensing_test

import (
	"slices"
	"testing"
	"time"

	"licet/licensing"
)

func TestParseMoment(t *testing.T) {
	for text, want := range map[string]string{
		"2031-01-31":                "2031-01-31T00:00:00.000Z",
		"2031-01-31T12:00:00+02:00": "2031-01-31T10:00:00.000Z",
		"2032-02-29":                "2032-02-29T00:00:00.000Z",
	} {
		if at, ok := licensing.ParseMoment(text); !ok || licensing.FormatTime(at) != want {
			t.Errorf("%q is %v, %v, want %s", text, at, ok, want)
		}
	}
	for _, text := range []string{"", "2031", "2031-02-29", "31-01-2031", "2031-1-031", "2031-01-31Z", "2031/01/31"} {
		if at, ok := licensing.ParseMoment(text); ok {
			t.Errorf("%q is %v", text, at)
		}
	}
}

func TestTimeRange(t *testing.T) {
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	for _, c := range []struct {
		of   licensing.TimeRange
		want []int
	}{
		{licensing.TimeRange{}, []int{1, 2, 3, 4}},
		{licensing.TimeRange{From: at(2)}, []int{2, 3, 4}},
		{licensing.TimeRange{To: at(2)}, []int{1}},
		{licensing.TimeRange{From: at(2), To: at(4)}, []int{2, 3}},
		{licensing.TimeRange{From: at(4), To: at(2)}, nil},
	} {
		var got []int
		for second := 1; second <= 4; second++ {
			if c.of.Has(at(second)) {
				got = append(got, second)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v has %v, want %v", c.of, got, c.want)
		}
		if all := c.of == (licensing.TimeRange{}); c.of.Has(time.Time{}) != all {
			t.Errorf("%v has the zero time: %v", c.of, !all)
		}
	}
}

// TestFirstOrderNo: the text lies between the numbers of two neighboring milliseconds.
func TestFirstOrderNo(t *testing.T) {
	owner := licensing.Owner{AccountID: "acct_1", Mode: licensing.Live}
	for _, c := range []struct {
		before string
		at     int64
		from   string
	}{
		{"01JZZZZZZZ", 1<<40 + 19<<35, "01K0000000"},
		{"00000000ZZ", 1 << 10, "0000000100"},
	} {
		first := licensing.FirstOrderNo(owner, time.UnixMilli(c.at))
		if before := licensing.NewOrderNo(owner, c.before+"ZZZZZZZZZZZZZZZZ"); before >= first {
			t.Errorf("%d: %s is not before %s", c.at, before, first)
		}
		if from := licensing.NewOrderNo(owner, c.from+"0000000000000000"); from < first {
			t.Errorf("%d: %s is before %s", c.at, from, first)
		}
	}
}
