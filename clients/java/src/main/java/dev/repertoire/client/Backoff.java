package dev.repertoire.client;

import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** When something is tried again, and what. */
final class Backoff {
  static final int ATTEMPTS = 7;
  private static final long FIRST_MILLIS = 250;
  private static final long LONG_MILLIS = 5_000;

  private Backoff() {}

  /**
   * The time before another attempt, from 0: with full jitter, so that callers that failed
   * together do not come back together, and not before the server wants it.
   */
  static Duration pause(int attempt, Duration after) {
    long top = Math.min(LONG_MILLIS, FIRST_MILLIS << Math.min(attempt, 8));
    return after.plusMillis(ThreadLocalRandom.current().nextLong(top));
  }

  /** Nothing was begun, or it may be done again, and a later call may succeed. */
  static boolean isWorthARetry(RepertoireException error, boolean isRepeatable) {
    switch (error.code()) {
      case "OVERLOADED":
      case "TOOL_QUOTA":
        // Refused before anything began. A status without a delay is of this side: a message
        // that is too large stays so.
        return error.status() == Status.Code.RESOURCE_EXHAUSTED
            && (error.isNamed() || !error.retryAfter().isZero());
      case "TOOL_UNAVAILABLE":
        // The tool may have done its work.
        return isRepeatable && !error.retryAfter().isZero();
      default:
        return isRepeatable
            && (error.status() == Status.Code.UNAVAILABLE || error.status() == Status.Code.ABORTED);
    }
  }

  /**
   * The same stream may go on later. What the server names is final unless its code says that
   * it is not; without a name it came from the connection.
   */
  static boolean isAnInterruption(RepertoireException error) {
    return switch (error.status()) {
      case UNAVAILABLE, RESOURCE_EXHAUSTED, ABORTED, DEADLINE_EXCEEDED -> true;
      case INTERNAL, UNKNOWN, CANCELLED -> !error.isNamed();
      default -> false;
    };
  }
}
