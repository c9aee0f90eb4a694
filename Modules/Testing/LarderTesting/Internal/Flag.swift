import Dispatch
import Synchronization

/// A truth value that tasks share.
final class Flag: Sendable {
  private let value = Atomic(false)
  private let raising = DispatchSemaphore(value: 0)

  var isRaised: Bool { value.load(ordering: .sequentiallyConsistent) }

  func raise() {
    value.store(true, ordering: .sequentiallyConsistent)
    raising.signal()
  }

  /// Whether it is raised already or soon; blocks the thread until then, for the midst of an operation, which must not
  /// be suspended.
  func isRaised(within time: Duration) -> Bool {
    guard !isRaised, raising.wait(timeout: .now() + time / .seconds(1)) == .success else { return isRaised }
    // For others who wait.
    raising.signal()
    return true
  }
}
