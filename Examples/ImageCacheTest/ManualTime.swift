import Foundation
import Larder

/// A clock that a test moves, so it does not have to wait for images to expire.
final class ManualTime: Sendable {
  private let current = Locked(Date(timeIntervalSince1970: 1_767_225_600))

  /// The current time, initially the first second of 2026, UTC.
  var date: Date { current.withLock { $0 } }

  /// Advances the time.
  func advance(by duration: Duration) {
    current.withLock { $0 += duration / .seconds(1) }
  }
}
