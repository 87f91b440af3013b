package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"licet/client/webhook"
)

// A receiver, and a request as the service sends it.
func Example() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	receiver, err := webhook.New(secret)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(receiver.Handler(func(_ context.Context, event *webhook.Event) error {
		switch event.Type {
		case webhook.OrderPaid:
			fmt.Println("paid:", event.Data.Order.OrderNo, event.Data.Order.LicenseKey)
		case webhook.LicenseRevoked:
			fmt.Println("revoked:", event.Data.License.LicenseKey)
		}
		return nil
	}))
	defer server.Close()

	body := []byte(`{"id":"evt_1","type":"order.paid","timestamp":"2030-01-02T03:04:05.678Z","sequence":2,"revision":77,"actor":"provider",
		"data":{"order":{"order_no":"ord_1","status":"paid","license_key":"LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1"}}}`)
	request, err := http.NewRequest(http.MethodPost, server.URL, bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	if request.Header, err = webhook.Sign(secret, "evt_1", time.Now(), body); err != nil {
		log.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	fmt.Println(response.Status)
	// Output:
	// paid: ord_1 LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1
	// 204 No Content
}
