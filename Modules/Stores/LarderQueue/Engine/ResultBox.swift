import Synchronization

/// Holds what a call gives, from where it runs to where its caller waits.
final class ResultBox<Result: Sendable>: Sendable {
  private let result = Mutex<Result?>(nil)

  /// Puts a result in, over any other.
  func set(_ new: Result) {
    let displaced = result.withLock { result in
      defer { result = new }
      return result
    }
    withExtendedLifetime(displaced) {}
  }

  /// Takes the result out.
  func take() -> Result? {
    result.withLock { result in
      defer { result = nil }
      return result
    }
  }
}
