import Larder
import LarderQueue

/// Opens queues, and says so where one is damaged, and whenever an item becomes a dead letter.
///
/// A damaged queue serves what is good, as a program wants it, which can ask what was found. Who uses the tool would take
/// the rest for the whole.
struct ReportingQueueProvider: StoreProvider {
  private let base: QueueStoreProvider

  /// Makes the provider.
  ///
  /// - Parameter base: What opens the queues.
  init(_ base: QueueStoreProvider) {
    self.base = base
  }

  var scheme: String { base.scheme }
  var summary: String { base.summary }

  func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await openQueue(url, options: options, codec: codec))
  }

  /// Opens a queue, as a queue.
  ///
  /// - Throws: What `QueueStoreProvider.openQueue` throws.
  func openQueue<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> QueueStore<Value> {
    let queue = try await base.openQueue(
      url, options: options, onDeath: { Diagnostics.writeLine("larder: \($0.key): \($0)") }, codec: codec)
    if let damage = Self.text(of: queue.recovery) {
      Diagnostics.writeLine("larder: \(url) is damaged: \(damage). The rest is there; `larder verify` tells more.")
    }
    return queue
  }

  /// What is damaged, in words; `nil` where nothing is.
  static func text(of report: RecoveryReport) -> String? {
    var parts: [String] = []
    if report.damagedPlaces > 0 {
      let places = report.damagedPlaces == 1 ? "1 place" : "\(report.damagedPlaces) places"
      parts.append("\(report.damagedBytes) bytes in \(places) cannot be read")
    }
    if report.missingSegments > 0 {
      parts.append(report.missingSegments == 1 ? "1 file is missing" : "\(report.missingSegments) files are missing")
    }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }
}
