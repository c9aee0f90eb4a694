/// The items and bytes that the running call has itself added to a queue; more than the capacity can never fit.
struct CallAccount: Sendable {
  /// Items from this number on came in this call.
  private(set) var firstSequence: UInt64 = 1
  private(set) var items = 0
  private(set) var bytes = 0
  private var sizes: [UInt64: Int] = [:]

  /// Begins another call.
  ///
  /// - Parameter nextSequence: The number of the next item.
  mutating func begin(at nextSequence: UInt64) {
    firstSequence = nextSequence
    guard !sizes.isEmpty else { return }
    sizes.removeAll()
    (items, bytes) = (0, 0)
  }

  /// Notes what the call has put into an item.
  ///
  /// - Parameters:
  ///   - size: The bytes; `nil` if it takes the item out.
  ///   - sequence: The item.
  mutating func note(_ size: Int?, of sequence: UInt64) {
    guard size != nil || !sizes.isEmpty else { return }
    let old = sizes[sequence]
    sizes[sequence] = size
    bytes += (size ?? 0) - (old ?? 0)
    if sequence >= firstSequence { items += (size == nil ? 0 : 1) - (old == nil ? 0 : 1) }
  }
}
