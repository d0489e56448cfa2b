// Scores two answers: go run . 127.0.0.1:50051 [TOKEN]
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	gradewire "example.com/gradewire/proto/gradewire/v1"
)

func main() {
	connection, err := grpc.Dial(os.Args[1], grpc.WithInsecure()) // grpc.NewClient and insecure credentials since 1.63
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if len(os.Args) > 2 {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Args[2])
	}
	var trailer metadata.MD
	reply, err := gradewire.NewScoringClient(connection).Score(ctx, &gradewire.ScoreRequest{
		Items: []*gradewire.Item{
			{Id: "right", Question: "What sleeps?", References: []string{"cat"}, Prediction: "It is a cat."},
			{Id: "empty", Question: "What sleeps?", References: []string{"cat"}},
		},
		Metrics: []*gradewire.MetricSpec{
			{Metric: &gradewire.MetricSpec_Correctness{Correctness: &gradewire.CorrectnessParameters{}}},
		},
	}, grpc.Trailer(&trailer))
	if err != nil {
		log.Fatalf("%s: %s (request %s)", status.Code(err), status.Convert(err).Message(), trailer.Get("x-request-id"))
	}
	for _, item := range reply.Items {
		for _, result := range item.Results {
			if result.Score == nil {
				fmt.Println(item.Id, result.Status, result.Message)
			} else {
				fmt.Printf("%s %.4f\n", item.Id, *result.Score)
			}
		}
	}
}
