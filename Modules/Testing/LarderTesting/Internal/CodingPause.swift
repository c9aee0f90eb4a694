#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Synchronization

/// Lets a case do something in the midst of an operation: while a store encodes or decodes a certain value.
final class CodingPause: Sendable {
  private static let prefix = "larder.testing.pause:"
  private static let all = Mutex<[String: CodingPause]>([:])

  private let text = CodingPause.prefix + UUID().uuidString
  private let body = Mutex<(@Sendable () -> Void)?>(nil)

  /// The value that takes part.
  var value: SampleValue { SampleValue(text) }

  /// Does something the next time that the value is encoded or decoded, once.
  func arm(_ body: @escaping @Sendable () -> Void) {
    self.body.withLock { $0 = body }
    CodingPause.all.withLock { $0[text] = self }
  }

  /// Takes back what was not done yet.
  func disarm() {
    CodingPause.all.withLock { $0[text] = nil }
    body.withLock { $0 = nil }
  }

  /// Called by every value that is encoded or decoded.
  static func meet(_ text: String) {
    guard text.utf8.starts(with: prefix.utf8), let pause = all.withLock({ $0[text] }) else { return }
    let body = pause.body.withLock { body in
      defer { body = nil }
      return body
    }
    body?()
  }
}
