package client_test

import (
	"context"
	"fmt"
	"log"

	"licet/client"
	"licet/internal/servicetest"
)

// A shop sells a license, and the program that the shop sold activates it. licet dev writes the address and the API
// key into dev.env.
func Example() {
	ctx := context.Background()
	url, apiKey := devService()
	shop, err := client.New(url, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	order, err := shop.Orders.Create(ctx, client.NewOrder{ProductID: "sketch", Amount: 4900, Currency: "USD"},
		client.IdempotencyKey("checkout-8114"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.Status)

	// In test mode, this replaces the buyer, who would pay at order.PayURL.
	if order, err = shop.Sandbox.Pay(ctx, order.OrderNo); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.Status)

	program, err := client.New(url, "") // users have no API key
	if err != nil {
		log.Fatal(err)
	}
	for _, device := range []string{"laptop", "desktop", "tablet", "phone"} {
		activated, err := program.Activate(ctx, client.Activation{LicenseKey: order.LicenseKey, DeviceID: device})
		switch {
		case client.HasReason(err, client.ReasonDeviceLimitReached):
			fmt.Println("no slot is left for the", device)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Printf("%s: %d of %d\n", activated.DeviceID, activated.CurrentDevices, activated.MaxDevices)
		}
	}

	for license, err := range shop.Licenses.All(ctx, client.LicenseFilter{ProductID: "sketch"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(license.Status)
	}
	// Output:
	// unpaid
	// paid
	// laptop: 1 of 3
	// desktop: 2 of 3
	// tablet: 3 of 3
	// no slot is left for the phone
	// activated
}

func devService() (url, apiKey string) {
	key, err := service.Key(servicetest.NewAccount())
	if err != nil {
		log.Fatal(err)
	}
	return service.URL, key.Text
}
