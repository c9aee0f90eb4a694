/// Brings the pairs of a map, or the elements of a set, into the order of the bytes of their keys, as section 4.2.1 of
/// RFC 8949 has it, so that equal values have equal bytes.
@usableFromInline
struct ItemSorter {
  private struct Item {
    let start: Int
    let keyEnd: Int
    var end: Int
  }

  private var items: [Item] = []
  private let start: Int

  @usableFromInline
  init(_ writer: borrowing CBORWriter, count: Int) {
    start = writer.count
    items.reserveCapacity(count)
  }

  /// Notes that a key has been written; an element of a set is a key.
  @usableFromInline
  mutating func noteKey(_ writer: borrowing CBORWriter) {
    items.append(Item(start: items.last?.end ?? start, keyEnd: writer.count, end: writer.count))
  }

  /// Notes that the value of the last key has been written.
  @usableFromInline
  mutating func noteValue(_ writer: borrowing CBORWriter) {
    items[items.count - 1].end = writer.count
  }

  /// Sorts what was written.
  ///
  /// - Throws: `EncodingError` where two keys have the same bytes, which could not be read again.
  @usableFromInline
  func sort(_ writer: inout CBORWriter) throws {
    guard items.count > 1 else { return }
    let memory = UnsafeRawPointer(writer.start)
    func order(_ first: Item, _ second: Item) -> Int {
      let counts = (first.keyEnd - first.start, second.keyEnd - second.start)
      let order = compare(memory + first.start, memory + second.start, count: min(counts.0, counts.1))
      return order != 0 ? order : counts.0 - counts.1
    }
    var isSorted = true
    for index in items.indices.dropFirst() {
      let order = order(items[index - 1], items[index])
      if order == 0 { throw writer.invalid("Two keys of a map, or two elements of a set, have the same bytes.") }
      if order > 0 {
        isSorted = false
        break
      }
    }
    guard !isSorted else { return }
    let sorted = items.sorted { order($0, $1) < 0 }
    for index in sorted.indices.dropFirst() where order(sorted[index - 1], sorted[index]) == 0 {
      throw writer.invalid("Two keys of a map, or two elements of a set, have the same bytes.")
    }
    let count = writer.count - start
    withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { scratch in
      guard let address = scratch.baseAddress else { return }
      address.copyMemory(from: memory + start, byteCount: count)
      var next = writer.start + start
      for item in sorted {
        next.copyMemory(from: address + (item.start - start), byteCount: item.end - item.start)
        next += item.end - item.start
      }
    }
  }
}
