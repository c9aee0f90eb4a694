#if Compression
import Dispatch
import Synchronization

/// Where a thread that does something with a file waits until it is let go on.
final class Hold: Sendable {
  /// What a thread is about to do.
  enum Point: CaseIterable {
    case writing, synchronizing
  }

  private struct State {
    var point: Point?
    var hasTimedOut = false
  }

  private let state = Mutex(State())
  private let release = DispatchSemaphore(value: 0)
  private let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)

  /// Whether a thread went on because nobody let it: so that what waits for it is a failure and not a test that hangs.
  var hasTimedOut: Bool { state.withLock { $0.hasTimedOut } }

  /// Holds the next thread that comes to a point.
  func begin(at point: Point) {
    state.withLock { $0.point = point }
  }

  /// Waits until a thread is held, or nobody comes any more.
  func waitForArrival() async {
    for await _ in arrivals { return }
  }

  /// Takes note that nobody comes any more.
  func finish() {
    arrival.finish()
  }

  /// Lets the thread go on.
  func end() {
    release.signal()
  }

  /// Waits where it is this point at which a thread is to be held.
  func pass(_ point: Point) {
    let isHeld = state.withLock { state in
      guard state.point == point else { return false }
      state.point = nil
      return true
    }
    guard isHeld else { return }
    arrival.yield()
    guard release.wait(timeout: .now() + 20) == .timedOut else { return }
    state.withLock { $0.hasTimedOut = true }
  }
}
#endif
