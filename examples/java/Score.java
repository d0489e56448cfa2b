import com.gradewire.v1.*;
import io.grpc.*;
import io.grpc.stub.MetadataUtils;
import java.util.concurrent.TimeUnit;

/** Scores two answers: java Score HOST:PORT [TOKEN]. */
public final class Score {
  public static void main(String[] arguments) {
    ManagedChannel channel = ManagedChannelBuilder.forTarget(arguments[0]).usePlaintext().build();
    Metadata headers = new Metadata();
    if (arguments.length > 1) {
      headers.put(key("authorization"), "Bearer " + arguments[1]);
    }
    ScoringGrpc.ScoringBlockingStub scoring =
        ScoringGrpc.newBlockingStub(channel)
            .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers))
            .withDeadlineAfter(10, TimeUnit.SECONDS);
    Item.Builder cat = Item.newBuilder().setQuestion("What sleeps?").addReferences("cat");
    ScoreRequest request =
        ScoreRequest.newBuilder()
            .addItems(cat.clone().setId("right").setPrediction("It is a cat."))
            .addItems(cat.clone().setId("empty"))
            .addMetrics(MetricSpec.newBuilder().setCorrectness(CorrectnessParameters.getDefaultInstance()))
            .build();
    try {
      for (ItemResult item : scoring.score(request).getItemsList()) {
        for (MetricResult result : item.getResultsList()) {
          System.out.println(item.getId() + " " + (result.hasScore() ? result.getScore() : result.getStatus()));
        }
      }
    } catch (StatusRuntimeException failure) {
      Metadata trailers = failure.getTrailers();
      String requestId = trailers == null ? null : trailers.get(key("x-request-id"));
      System.err.println(failure.getStatus() + " (request " + requestId + ")");
      System.exit(1);
    } finally {
      channel.shutdownNow();
    }
  }

  private static Metadata.Key<String> key(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }
}
