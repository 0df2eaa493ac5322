package dev.repertoire.client;

import dev.repertoire.v1.Event;
import dev.repertoire.v1.RegistryGrpc.RegistryBlockingStub;
import dev.repertoire.v1.WatchRequest;
import dev.repertoire.v1.WatchResponse;
import io.grpc.Context;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * The log of what happens to skills, from a place on: {@link #hasNext} waits for the next
 * event, over as many connections as it takes.
 *
 * <p>It is false once the watch is closed, by any thread. It throws where the server says that it
 * cannot go on: {@code RESUME_TOKEN_EXPIRED} where the watch was away for longer than the log
 * reaches back. Then list the skills again, and watch from the token of the list.
 */
public final class Watch implements Iterator<Event>, AutoCloseable {
  private final RegistryBlockingStub registry;
  private final Duration timeout;
  private final ScheduledExecutorService timer;
  private final Runnable reconnect;
  private final Context.CancellableContext context = Context.current().withCancellation();
  private final CountDownLatch closed = new CountDownLatch(1);
  private WatchRequest request;
  /** Of the connection that there is; null: there is none. */
  private Iterator<WatchResponse> answers;
  private WatchResponse received;
  private volatile String resumeToken;

  /** From when this has returned on, nothing is missed. */
  Watch(
      RegistryBlockingStub registry,
      WatchRequest request,
      Duration timeout,
      ScheduledExecutorService timer,
      Runnable reconnect) {
    this.registry = registry;
    this.timeout = timeout;
    this.timer = timer;
    this.reconnect = reconnect;
    // These would end it.
    this.request = request.toBuilder().clearMaxEvents().clearMaxWaitSeconds().build();
    this.resumeToken = request.getResumeToken();
    long until = System.nanoTime() + timeout.toNanos();
    for (int attempt = 0; ; attempt++) {
      try {
        open();
        return;
      } catch (RepertoireException error) {
        Duration wait = Backoff.pause(attempt, error.retryAfter());
        boolean isLast = attempt + 1 == Backoff.ATTEMPTS || until - System.nanoTime() <= wait.toNanos();
        if (isLast || !Backoff.isAnInterruption(error) || isClosedWithin(wait)) {
          close();
          throw error;
        }
      }
    }
  }

  /**
   * Begins where the last answer left off. The first answer has the place of the watch and no
   * event.
   */
  private void open() {
    reconnect.run();
    Context.CancellableContext connection = context.withCancellation();
    Runnable start = () -> answers = registry.watch(request);
    ScheduledFuture<?> patience = null;
    WatchResponse first;
    try {
      // The stream is endless, its beginning is not.
      patience = timer.schedule(() -> connection.cancel(null), timeout.toMillis(), TimeUnit.MILLISECONDS);
      connection.run(start);
      first = receive();
    } catch (RejectedExecutionException closed) {
      throw RepertoireException.of(Status.CANCELLED.withDescription("The client is closed").asRuntimeException());
    } finally {
      if (patience != null) {
        patience.cancel(false);
      }
    }
    request = request.toBuilder().setResumeToken(first.getResumeToken()).build();
    if (first.hasEvent()) {
      received = first;
    } else {
      resumeToken = first.getResumeToken();
    }
  }

  /** The next answer of the connection. */
  private WatchResponse receive() {
    try {
      if (answers.hasNext()) {
        return answers.next();
      }
    } catch (StatusRuntimeException error) {
      answers = null;
      throw RepertoireException.of(error);
    }
    // No watch ends by itself: the server goes away.
    answers = null;
    throw RepertoireException.of(
        Status.UNAVAILABLE.withDescription("The server ended the watch").asRuntimeException());
  }

  private boolean isClosed() {
    return closed.getCount() == 0 || context.isCancelled();
  }

  private boolean isClosedWithin(Duration time) {
    try {
      return closed.await(time.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException leave) {
      Thread.currentThread().interrupt();
      throw RepertoireException.of(
          Status.CANCELLED.withDescription("The thread was interrupted").asRuntimeException());
    }
  }

  @Override
  public boolean hasNext() {
    int failures = 0;
    while (received == null && !isClosed()) {
      try {
        if (answers == null) {
          open();
          continue;
        }
        WatchResponse response = receive();
        failures = 0;
        request = request.toBuilder().setResumeToken(response.getResumeToken()).build();
        if (response.hasEvent()) {
          received = response;
        } else {
          resumeToken = response.getResumeToken();
        }
      } catch (RepertoireException error) {
        if (isClosed()) {
          return false;
        }
        if (!Backoff.isAnInterruption(error)) {
          throw error;
        }
        if (isClosedWithin(Backoff.pause(failures++, error.retryAfter()))) {
          return false;
        }
      }
    }
    return received != null && !isClosed();
  }

  @Override
  public Event next() {
    if (!hasNext()) {
      throw new NoSuchElementException("the watch is closed");
    }
    Event event = received.getEvent();
    resumeToken = received.getResumeToken();
    received = null;
    return event;
  }

  /**
   * Where to go on after the last event that {@link #next} gave: in a request it lets another
   * process do that.
   */
  public String resumeToken() {
    return resumeToken;
  }

  @Override
  public void close() {
    closed.countDown();
    context.cancel(null);
  }
}
