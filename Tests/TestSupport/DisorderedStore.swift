package import Larder
import LarderTesting

/// A store whose scans, once it is damaged, begin with the same entries again and again.
///
/// A loop over its pages must find out that they lead nowhere.
package final class DisorderedStore<Value: Sendable>: PassingStore {
  package let base = MemoryStore<Value>()
  private let isDamaged = Locked(false)

  package init() {}

  package func damage() { isDamaged.withLock { $0 = true } }

  /// Returns the range from the first key with the same three bytes, or from the last key for a descending scan.
  private func seen(_ range: KeyRange, _ order: ScanOrder) -> KeyRange {
    guard isDamaged.withLock({ $0 }) else { return range }
    return switch order {
    case .ascending: KeyRange(from: StoreKey(bytes: range.lowerBound.bytes.prefix(3)), upTo: range.upperBound)
    case .descending: KeyRange(from: range.lowerBound, upTo: nil)
    }
  }

  package func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.keys(in: seen(range, order), limit: limit, order: order)
  }

  package func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try base.entries(in: seen(range, order), limit: limit, order: order)
  }
}
