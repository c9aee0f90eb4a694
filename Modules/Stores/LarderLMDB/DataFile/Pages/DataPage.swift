#if LMDB
import Larder

/// A branch page or a leaf page of a tree, whose content is not trusted.
///
/// Source of the layout: `struct MDB_page` and `MDB_node` in `mdb.c` of LMDB 0.9 and 1.0.
struct DataPage {
  enum Kind: UInt16 {
    case branch = 0x01
    case leaf = 0x02
    case overflow = 0x04
    case meta = 0x08
  }

  /// The flags of the kinds above, of pages of values without keys, and of pages inside of nodes.
  private static let kindFlags: UInt16 = 0x6F

  /// A node of a page.
  struct Node {
    /// The place of the key in the page.
    let key: Range<Int>
    let content: Content
  }

  /// The content of a node.
  enum Content {
    /// The number of the page below a branch page.
    case child(UInt64)
    /// The place of a value in the page.
    case value(Range<Int>)
    /// A value on pages of its own: the number of the first one, and the size of the value in bytes.
    case overflow(page: UInt64, size: Int)
    /// The record of a named database.
    case database(DatabaseRecord)
    /// Several values of one key.
    case duplicates
  }

  let number: UInt64
  let bytes: [UInt8]
  let kind: Kind
  /// The number of nodes, at least 1.
  let nodeCount: Int
  /// The number of the transaction that wrote the page, or `nil` in version 0.9, which does not record it.
  let transaction: UInt64?

  private let format: DataFileFormat
  /// The place of the first byte after the free space, where the nodes begin.
  private let upper: Int

  /// Checks the header of a page.
  ///
  /// - Throws: ``PageDamage``.
  init(_ number: UInt64, _ bytes: [UInt8], _ format: DataFileFormat) throws(PageDamage) {
    let page = PageBytes(bytes[...])
    guard let own: UInt64 = page.integer(at: 0), let flags: UInt16 = page.integer(at: 10 + format.shift),
      let lower: UInt16 = page.integer(at: 12 + format.shift), let upper: UInt16 = page.integer(at: 14 + format.shift)
    else { throw PageDamage(page: number, problem: "is not in the file") }
    guard own == number else { throw PageDamage(page: number, problem: "has the number of another page") }
    guard let kind = Kind(rawValue: flags & DataPage.kindFlags), kind == .branch || kind == .leaf else {
      throw PageDamage(page: number, problem: "is no page of a tree")
    }
    let (end, start) = (Int(lower) + format.nodeBase, Int(upper) + format.nodeBase)
    guard end > format.pageHeaderSize, end.isMultiple(of: 2), end <= start, start <= bytes.count else {
      throw PageDamage(page: number, problem: "has a damaged header")
    }
    self.number = number
    self.bytes = bytes
    self.kind = kind
    self.format = format
    self.upper = start
    nodeCount = (end - format.pageHeaderSize) / 2
    transaction = format == .version1 ? nil : page.integer(at: 8)
  }

  /// Returns a node, or `nil` if it is damaged.
  func node(_ index: Int) -> Node? {
    let page = PageBytes(bytes[...])
    guard let offset: UInt16 = page.integer(at: format.pageHeaderSize + 2 * index) else { return nil }
    let place = Int(offset) + format.nodeBase
    guard place >= upper, let low: UInt16 = page.integer(at: place), let high: UInt16 = page.integer(at: place + 2),
      let flags: UInt16 = page.integer(at: place + 4), let keySize: UInt16 = page.integer(at: place + 6),
      place + 8 + Int(keySize) <= bytes.count
    else { return nil }
    let key = place + 8..<place + 8 + Int(keySize)
    let number = UInt64(low) | UInt64(high) << 16
    if kind == .branch { return Node(key: key, content: .child(number | UInt64(flags) << 32)) }
    let (start, size) = (key.lowerBound + format.data(afterKeyOf: key.count), Int(number))
    let content: Content
    switch flags {
    case 0:
      guard size <= bytes.count - start else { return nil }
      content = .value(start..<start + size)
    case 0x01:
      guard let first: UInt64 = page.integer(at: start) else { return nil }
      content = .overflow(page: first, size: size)
    case 0x02:
      guard size == DatabaseRecord.size, let record = DatabaseRecord(page, at: start) else { return nil }
      content = .database(record)
    case 0x04, 0x06:
      content = .duplicates
    default:
      return nil
    }
    return Node(key: key, content: content)
  }

  /// Returns the key of a node.
  ///
  /// - Parameter isInteger: A Boolean value that indicates whether the key is an integer of 8 bytes in native byte
  ///   order, whose bytes are returned in the order in which such keys sort.
  func key(of node: Node, isInteger: Bool) -> StoreKey {
    let key = bytes[node.key]
    #if _endian(little)
    return isInteger ? StoreKey(bytes: key.reversed()) : StoreKey(bytes: key)
    #else
    return StoreKey(bytes: key)
    #endif
  }

  /// Returns the keys of nodes of the page, with `nil` for damaged nodes, keys outside of bounds, and both of two keys that are
  /// not in order, because either of them can be the damaged one.
  func keys(of nodes: [Node?], within bounds: KeyRange, areIntegers: Bool) -> [StoreKey?] {
    let sizes = areIntegers ? 8...8 : 1...StoreKey.maximumLength
    var keys = nodes.indices.map { index -> StoreKey? in
      // The first key of a branch page is never used.
      guard kind == .leaf || index > 0 else { return bounds.lowerBound }
      guard let node = nodes[index], sizes.contains(node.key.count) else { return nil }
      let key = key(of: node, isInteger: areIntegers)
      return bounds.contains(key) ? key : nil
    }
    var isOrdered = false
    while !isOrdered {
      isOrdered = true
      var previous: Int?
      for index in keys.indices {
        guard let key = keys[index] else { continue }
        if let before = previous, let other = keys[before], other >= key {
          keys[index] = nil
          // The first key of a branch page is certain.
          if kind == .leaf || before > 0 { keys[before] = nil }
          isOrdered = false
          previous = nil
        } else {
          previous = index
        }
      }
    }
    return keys
  }
}

/// Damage of one page.
struct PageDamage: Error, Hashable {
  let page: UInt64
  /// The rest of a sentence that begins with the page.
  let problem: String
  /// A remark on the entries that were found in place of the page, or `nil`.
  var remark: String?
}
#endif
