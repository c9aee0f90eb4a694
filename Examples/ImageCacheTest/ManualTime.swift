import Foundation
import Synchronization

/// A time that moves only when it is told to, so that nobody has to wait for images to expire.
final class ManualTime: Sendable {
  private let current = Mutex(Date(timeIntervalSince1970: 1_767_225_600))

  /// What time it is; at first the first second of the year 2026, UTC.
  var date: Date { current.withLock { $0 } }

  /// Moves the time on.
  func advance(by duration: Duration) {
    current.withLock { $0 += duration / .seconds(1) }
  }
}
