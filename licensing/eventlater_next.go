//go:build licetnext

package licensing

func laterTypes() []EventType { return []EventType{"license.paused"} }

// asLater records the suspension of a license of the product "next-kind" as a kind of its own, with new members.
func asLater(e Event) Event {
	if e.Type == EventLicenseSuspended && e.License != nil && e.License.ProductID == "next-kind" {
		e.Type = "license.paused"
		e.Members = []EventMember{{Of: "license", Name: "pauses", JSON: "3"}, {Name: "pause", JSON: `{"days":30}`}}
	}
	return e
}
