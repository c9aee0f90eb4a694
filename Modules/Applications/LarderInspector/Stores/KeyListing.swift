#if Inspector
import Larder

/// A page of the keys with a prefix, in which the keys of a deeper level are folded into one folder.
struct KeyListing: Sendable, Hashable {
  /// A line of the page.
  enum Node: Sendable, Hashable {
    case key(StoreKey)
    /// The keys that begin with a prefix, which ends with a separator.
    case folder(StoreKey)

    /// The first key that the line stands for.
    var start: StoreKey {
      switch self {
      case .key(let key), .folder(let key): key
      }
    }

    /// The keys that the line stands for.
    var range: KeyRange {
      switch self {
      case .key(let key): .only(key)
      case .folder(let prefix): .prefix(prefix)
      }
    }
  }

  /// The place at which a page begins or ends.
  enum Place: Sendable, Hashable {
    /// The page with the first lines from a key on.
    case from(StoreKey)
    /// The page with the last lines before a key.
    case before(StoreKey)
  }

  /// The number of lines of a page.
  static let length = 100

  /// The bytes after which a level ends.
  static let separators: Set<UInt8> = [UInt8(ascii: "/"), UInt8(ascii: ":")]

  /// The lines, in key order.
  private(set) var nodes: [Node] = []
  /// The place of the next page, or `nil` on the last one.
  private(set) var next: Place?
  /// The place of the previous page, or `nil` on the first one.
  private(set) var previous: Place?

  /// Reads a page.
  ///
  /// A folder costs one short read, however many keys are in it, so a page takes as long in a large store as in a small one.
  ///
  /// - Parameters:
  ///   - prefix: The prefix of the keys; empty for all keys.
  ///   - place: The place of the page.
  ///   - folds: A Boolean value that indicates whether there are folders.
  ///   - keys: A closure that returns the keys of a range, as a store does.
  init(
    prefix: StoreKey, at place: Place, folds: Bool,
    keys: (_ range: KeyRange, _ limit: Int, _ order: ScanOrder) async throws -> [StoreKey]
  ) async throws {
    let all = KeyRange.prefix(prefix)
    var (rest, order) = (all, ScanOrder.ascending)
    switch place {
    case .from(let key): rest = KeyRange(from: max(key, all.lowerBound), upTo: all.upperBound)
    case .before(let key): (rest, order) = (all.before(key), .descending)
    }
    // One more than the page has, to know whether there is another page.
    let limit = Self.length + 1
    var batch = 2
    while nodes.count < limit {
      let read = try await keys(rest, batch, order)
      for key in read {
        if let last = nodes.last, last.range.contains(key) { continue }
        nodes.append(folds ? Self.node(of: key, below: prefix.count) : .key(key))
        if nodes.count == limit { break }
      }
      guard let last = nodes.last, read.count == batch else { break }
      // Small batches where one folder follows another, and large ones where keys do.
      if case .folder = last { batch = 2 } else { batch = min(4 * batch, limit) }
      let end = last.range
      rest =
        order == .ascending
        ? KeyRange(from: end.upperBound ?? last.start, upTo: rest.upperBound) : rest.before(end.lowerBound)
      if order == .ascending, end.upperBound == nil { break }
    }
    let isMore = nodes.count == limit
    if isMore { nodes.removeLast() }
    if order == .descending { nodes.reverse() }
    guard let first = nodes.first, let last = nodes.last else { return }
    let after = last.range.upperBound.map { KeyRange(from: $0, upTo: all.upperBound) }
    let isAfter =
      if order == .ascending { isMore } else if let after { try await !keys(after, 1, .ascending).isEmpty } else {
        false
      }
    let isBefore = order == .descending ? isMore : try await !keys(all.before(first.start), 1, .descending).isEmpty
    if isAfter, let start = after?.lowerBound { next = .from(start) }
    if isBefore { previous = .before(first.start) }
  }

  /// Returns the line of a key: the key itself, or the folder that it is in.
  private static func node(of key: StoreKey, below level: Int) -> Node {
    let bytes = key.bytes
    guard let end = bytes.dropFirst(level).firstIndex(where: separators.contains) else { return .key(key) }
    return .folder(StoreKey(bytes: bytes[...end]))
  }
}
#endif
