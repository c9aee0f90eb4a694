#if LMDB
import Larder

/// A scan over a range of keys of one tree that continues behind damaged pages.
///
/// The scan ends on any file: no branch page is visited twice, and a tree is at most ``maximumDepth`` pages deep, as LMDB
/// requires.
///
/// A page below a branch page may only have keys between the two keys around it. An entry is delivered only if its key is
/// there and in order. A branch page without such keys does not count as visited, because it has another place in the tree,
/// whose entries must not get lost.
///
/// In place of keys that a damaged page makes unreadable, the leaves that nothing refers to any more can be visited.
struct TreeScan {
  /// An entry or damage that a scan finds.
  enum Item {
    case entry(StoreKey, Content)
    /// Damage, and the keys that cannot be read because of it, if any.
    case damage(PageDamage, lost: KeyRange?)
  }

  /// The content of an entry.
  enum Content {
    case value([UInt8])
    case database(DatabaseRecord)
    /// A value of a scan that reads none.
    case unread
  }

  /// Returns the leaves of the tree that damage has made unreachable, or `nil` if they are not looked for.
  ///
  /// It is called for the first damage, because it reads the whole file.
  typealias Unreached = () throws -> UnreachedLeaves?

  /// `CURSOR_STACK` in `mdb.c`.
  private static let maximumDepth = 32

  private let snapshot: DataFileSnapshot
  private let range: KeyRange
  private let order: ScanOrder
  private let hasIntegerKeys: Bool
  private let readsValues: Bool
  private let unreached: Unreached

  /// The part of the range that was not visited yet.
  private var remaining: KeyRange

  /// The branch pages that were visited.
  private var visited: Set<UInt64> = []

  /// The leaf pages with entries in their place and the pages of large values, or `nil` if they are not recorded.
  private var others: Set<UInt64>?

  /// Visits the entries of a range in order.
  ///
  /// - Parameters:
  ///   - root: The root page of the tree, or `nil` if it is empty.
  ///   - snapshot: The state of the data file.
  ///   - range: The range. Defaults to all keys.
  ///   - order: The order. Defaults to ascending.
  ///   - hasIntegerKeys: A Boolean value that indicates whether the keys are integers, as those of the database of free
  ///     pages. Defaults to `false`.
  ///   - readsValues: A Boolean value that indicates whether the values are read. Defaults to `true`.
  ///   - recordsPages: A Boolean value that indicates whether the pages are recorded. Defaults to `false`.
  ///   - unreached: The leaves to use in place of damaged pages. Defaults to a closure that returns `nil`.
  ///   - visit: A closure that receives what is found, and returns whether to continue.
  /// - Returns: The pages with entries or large values of the tree, and the branch pages above them, if they are recorded.
  /// - Throws: The error that `visit` throws; `FileError` if the file cannot be read.
  @discardableResult
  static func run(
    from root: UInt64?, in snapshot: DataFileSnapshot, range: KeyRange = .all, order: ScanOrder = .ascending,
    hasIntegerKeys: Bool = false, readsValues: Bool = true, recordsPages: Bool = false,
    unreached: Unreached = { nil }, _ visit: (Item) throws -> Bool
  ) throws -> Set<UInt64> {
    guard let root, !range.isEmpty else { return [] }
    return try withoutActuallyEscaping(unreached) { unreached in
      var scan = TreeScan(
        snapshot: snapshot, range: range, order: order, hasIntegerKeys: hasIntegerKeys, readsValues: readsValues,
        unreached: unreached, remaining: range, others: recordsPages ? [] : nil)
      _ = try scan.visitPage(root, .all, depth: 1, visit)
      return scan.others?.union(scan.visited) ?? []
    }
  }

  /// Visits a page and those below it.
  ///
  /// - Parameter bounds: The keys that the page may have.
  /// - Returns: A Boolean value that indicates whether to continue.
  private mutating func visitPage(
    _ number: UInt64, _ bounds: KeyRange, depth: Int, _ visit: (Item) throws -> Bool
  ) throws -> Bool {
    guard bounds.overlaps(remaining) else { return true }
    let page: DataPage
    do throws(any Error) {
      guard depth <= TreeScan.maximumDepth else { throw PageDamage(page: number, problem: "is too deep in its tree") }
      page = try snapshot.page(number)
      if page.kind == .branch {
        guard !isMisplaced(page, bounds) else { throw PageDamage(page: number, problem: "is in the wrong place") }
        guard visited.insert(number).inserted else { throw PageDamage(page: number, problem: "is in use twice") }
      }
    } catch let damage as PageDamage {
      return try report(damage, losing: bounds, visit)
    }
    var parts = page.kind == .leaf ? entries(of: page, bounds) : children(of: page, bounds)
    if order == .descending { parts.reverse() }
    if page.kind == .leaf, parts.contains(where: \.isEntry) { others?.insert(number) }
    for part in parts where !remaining.isEmpty {
      let continues =
        switch part {
        case .entry(let key, let content): try visitEntry(key, content, of: page, visit)
        case .child(let number, let bounds): try visitPage(number, bounds, depth: depth + 1, visit)
        case .damage(let problem, let lost):
          try report(PageDamage(page: page.number, problem: problem), losing: lost, visit)
        }
      guard continues else { return false }
    }
    return true
  }

  private mutating func visitEntry(
    _ key: StoreKey, _ content: DataPage.Content, of page: DataPage, _ visit: (Item) throws -> Bool
  ) throws -> Bool {
    guard range.contains(key) else { return true }
    guard remaining.contains(key) else {
      return try report(
        PageDamage(page: page.number, problem: "has entries that are not in order"), losing: nil, visit)
    }
    let found: Content
    do throws(any Error) {
      found = try self.content(content, of: page)
    } catch let damage as PageDamage {
      return try reportLoss(damage, .only(key), visit)
    }
    pass(.only(key))
    return try visit(.entry(key, found))
  }

  private mutating func content(_ content: DataPage.Content, of page: DataPage) throws -> Content {
    switch content {
    case .database(let record): return .database(record)
    case .value(let place): return readsValues ? .value(Array(page.bytes[place])) : .unread
    case .overflow(let number, let size):
      if others != nil { others?.formUnion(try snapshot.pages(ofValueOnPage: number, size: size)) }
      guard readsValues else { return .unread }
      return .value(try snapshot.value(onPage: number, size: size))
    case .child, .duplicates:
      throw PageDamage(page: page.number, problem: "has several values of one key")
    }
  }

  /// Reports damage, and visits the leaves that it has made unreachable in place of the keys that it makes unreadable.
  private mutating func report(
    _ damage: PageDamage, losing lost: KeyRange?, _ visit: (Item) throws -> Bool
  ) throws -> Bool {
    guard let lost = lost?.intersection(remaining), !lost.isEmpty else { return try visit(.damage(damage, lost: nil)) }
    guard let found = try unreached() else { return try reportLoss(damage, lost, visit) }
    var damage = damage
    damage.remark = found.remark
    if found.isComplete, try !visit(.damage(damage, lost: nil)) { return false }
    var pieces: [(keys: KeyRange, page: UInt64?)] = []
    var start = lost.lowerBound
    for part in found.parts {
      let keys = part.keys.intersection(lost)
      guard !keys.isEmpty, let end = keys.upperBound else { continue }
      pieces += [(KeyRange(from: start, upTo: keys.lowerBound), nil), (keys, part.page)]
      start = end
    }
    pieces.append((KeyRange(from: start, upTo: lost.upperBound), nil))
    if order == .descending { pieces.reverse() }
    for piece in pieces where !piece.keys.isEmpty {
      if let page = piece.page {
        guard try visitUnreached(page, piece.keys, visit) else { return false }
      } else if !found.isComplete {
        guard try reportLoss(damage, piece.keys, visit) else { return false }
      }
      pass(piece.keys)
    }
    return true
  }

  /// Visits the entries of an unreachable leaf.
  private mutating func visitUnreached(
    _ number: UInt64, _ keys: KeyRange, _ visit: (Item) throws -> Bool
  ) throws -> Bool {
    let page: DataPage
    do throws(any Error) {
      page = try snapshot.page(number)
    } catch let damage as PageDamage {
      return try reportLoss(damage, keys, visit)
    }
    var parts = entries(of: page, .all)
    if order == .descending { parts.reverse() }
    for part in parts where !remaining.isEmpty {
      let continues =
        switch part {
        case .entry(let key, let content) where keys.contains(key): try visitEntry(key, content, of: page, visit)
        case .damage(let problem, let lost?):
          try reportLoss(PageDamage(page: number, problem: problem), lost.intersection(keys), visit)
        case .entry, .damage, .child: true
        }
      guard continues else { return false }
    }
    return true
  }

  /// Reports keys that cannot be read, if any, and continues behind them.
  private mutating func reportLoss(
    _ damage: PageDamage, _ lost: KeyRange, _ visit: (Item) throws -> Bool
  ) throws -> Bool {
    let lost = lost.intersection(remaining)
    guard !lost.isEmpty else { return true }
    pass(lost)
    return try visit(.damage(damage, lost: lost))
  }

  /// Removes some keys, and those before them in the order of the scan, from the remaining range.
  private mutating func pass(_ keys: KeyRange) {
    switch order {
    case .ascending:
      // Without an upper bound, nothing remains.
      let start = keys.upperBound ?? remaining.lowerBound
      remaining = KeyRange(from: start, upTo: keys.upperBound == nil ? start : remaining.upperBound)
    case .descending: remaining = KeyRange(from: remaining.lowerBound, upTo: keys.lowerBound)
    }
  }

  // MARK: The parts of a page

  /// A part of a page.
  private enum Part {
    case entry(StoreKey, DataPage.Content)
    case child(UInt64, KeyRange)
    /// Damage, and the keys that it may have made unreadable.
    case damage(problem: String, lost: KeyRange?)

    var isEntry: Bool {
      if case .entry = self { true } else { false }
    }
  }

  /// Returns whether a branch page has keys, but none of them within bounds.
  private func isMisplaced(_ page: DataPage, _ bounds: KeyRange) -> Bool {
    let keys = (1..<max(1, page.nodeCount)).compactMap(page.node).filter { !$0.key.isEmpty }.map {
      page.key(of: $0, isInteger: hasIntegerKeys && $0.key.count == 8)
    }
    return !keys.isEmpty && !keys.contains(where: bounds.contains)
  }

  /// Returns the entries of a leaf page, and the gaps between them if it is damaged.
  private func entries(of page: DataPage, _ bounds: KeyRange) -> [Part] {
    let nodes = (0..<page.nodeCount).map(page.node)
    let keys = page.keys(of: nodes, within: bounds, areIntegers: hasIntegerKeys)
    var parts: [Part] = []
    parts.reserveCapacity(nodes.count)
    var (isLosing, start) = (false, bounds.lowerBound)
    func endGap(at end: StoreKey?) {
      guard isLosing else { return }
      parts.append(.damage(problem: "has damaged entries", lost: KeyRange(from: start, upTo: end)))
      isLosing = false
    }
    for (node, key) in zip(nodes, keys) {
      guard let node, let key else {
        isLosing = true
        continue
      }
      if isLosing { endGap(at: key) }
      parts.append(.entry(key, node.content))
      start = key.successor
    }
    endGap(at: bounds.upperBound)
    return parts
  }

  /// Returns the pages below a branch page, each with the keys that it may have.
  ///
  /// Without the key between two pages, both may have all keys between the keys around them.
  private func children(of page: DataPage, _ bounds: KeyRange) -> [Part] {
    let nodes = (0..<page.nodeCount).map(page.node)
    let keys = page.keys(of: nodes, within: bounds, areIntegers: hasIntegerKeys)
    var parts: [Part] = []
    if keys.contains(where: { $0 == nil }) {
      parts.append(.damage(problem: "has damaged keys", lost: nil))
    }
    var lower = bounds.lowerBound
    for index in nodes.indices {
      if let key = keys[index] { lower = key }
      let upper = keys[(index + 1)...].lazy.compactMap { $0 }.first ?? bounds.upperBound
      let bounds = KeyRange(from: lower, upTo: upper)
      if case .child(let number)? = nodes[index]?.content {
        parts.append(.child(number, bounds))
      } else {
        // If there is no key between them, the page before may have the same keys, and the rest is lost.
        parts.append(.damage(problem: "has damaged keys", lost: bounds))
      }
    }
    return parts
  }
}
#endif
