#if LMDB
import Larder

/// The leaves of a tree that no readable page refers to, because a page above them is damaged.
struct UnreachedLeaves: Sendable {
  /// Entries of one leaf.
  struct Part: Sendable {
    let page: UInt64
    /// The keys of the entries, with an upper bound.
    let keys: KeyRange
  }

  /// The parts, in order and without common keys.
  var parts: [Part] = []

  /// A Boolean value that indicates whether the tree has all of its entries with these leaves, according to its record.
  var isComplete = false

  /// The number of entries that are left out, because they may be older or of another database.
  var leftOut = 0

  /// A remark on damage of the tree, or `nil`.
  var remark: String? {
    if isComplete { return "all entries below it were found" }
    if leftOut > 0 {
      return "\(leftOut) entries were found that may have been below it, but may also be older or of another named "
        + "database; larder salvage copies them with --possibly-older"
    }
    return parts.isEmpty ? nil : "entries below it were found, but some may be missing"
  }
}

/// A search through all pages of a data file for the leaves of damaged trees that no readable page refers to.
///
/// LMDB never overwrites a page of the state before a transaction. It writes changed pages to other places and lists the old
/// ones as free. So a page that is neither used by a readable tree nor free belongs to a tree with damage. It belongs to the
/// only tree that lacks the keys of the leaf, and its entries are those of the latest state.
///
/// If that is not certain, the entries are found only on request:
/// - If the list of free pages is damaged, a leaf may be free, with entries that were replaced or removed since.
/// - If two trees lack the keys, or two leaves have keys of the same range, the leaf may belong to another tree. The same is
///   true if the list of databases is damaged, or if a database has several values per key or its own order of keys.
struct PageSearch: Sendable {
  /// The maximum number of pages of a file that is searched, so a damaged size cannot keep the search busy for hours.
  private static let maximumPageCount: UInt64 = 1 << 26

  /// The state of the file.
  let meta: MetaPage

  private var found: [StoreKey: UnreachedLeaves] = [:]

  /// A database with damage.
  private struct Tree {
    let key: StoreKey
    let entryCount: UInt64
    var readableCount: UInt64 = 0
    var lost: [KeyRange] = []

    /// Returns whether the tree lacks all keys of a leaf, which are those between two branch keys.
    func lacks(_ leaf: Leaf) -> Bool {
      lost.contains { $0.contains(leaf.first) && $0.contains(leaf.last) }
    }
  }

  /// A leaf that nothing refers to.
  private struct Leaf {
    let page: UInt64
    let first: StoreKey
    let last: StoreKey
    let count: Int
    let transaction: UInt64?

    var keys: KeyRange { KeyRange(from: first, upTo: last.successor) }
  }

  /// Searches a file.
  ///
  /// - Parameters:
  ///   - snapshot: The state of the file.
  ///   - findsPossiblyOlder: A Boolean value that indicates whether entries are included that may be older or of
  ///     another database.
  /// - Throws: `FileError`.
  init(in snapshot: DataFileSnapshot, findsPossiblyOlder: Bool) throws {
    meta = snapshot.meta
    var pages = UsedPages()
    try pages.addFreePages(of: snapshot)
    let trees = try pages.addTrees(of: snapshot)
    guard !trees.isEmpty, snapshot.pageCount <= PageSearch.maximumPageCount else { return }
    let leaves = try PageSearch.leaves(in: snapshot, without: pages.numbers)
    for tree in trees {
      var (certain, others): ([Leaf], [Leaf]) = ([], [])
      for leaf in leaves where tree.lacks(leaf) {
        if pages.areCertain, trees.allSatisfy({ $0.key == tree.key || !$0.lacks(leaf) }) {
          certain.append(leaf)
        } else {
          others.append(leaf)
        }
      }
      others += PageSearch.removeOverlapping(from: &certain)
      var result = UnreachedLeaves(parts: certain.map { UnreachedLeaves.Part(page: $0.page, keys: $0.keys) })
      result.isComplete = tree.readableCount + certain.reduce(0) { $0 + UInt64($1.count) } == tree.entryCount
      if findsPossiblyOlder, !result.isComplete {
        result.parts += try PageSearch.parts(of: others, in: snapshot, besides: result.parts)
        result.parts.sort { $0.keys.lowerBound < $1.keys.lowerBound }
      } else if !result.isComplete {
        result.leftOut = others.reduce(0) { $0 + $1.count }
      }
      found[tree.key] = result
    }
  }

  /// Returns the leaves of a named database.
  func leaves(ofDatabase name: StoreKey) -> UnreachedLeaves {
    found[meta.format.key(ofDatabase: name)] ?? UnreachedLeaves()
  }

  // MARK: Pages that are used or free

  private struct UsedPages {
    var numbers: Set<UInt64> = []
    /// A Boolean value that indicates whether all pages that are neither used nor free belong to damaged databases that
    /// are known.
    var areCertain = true

    /// Adds the free pages, and the pages of their list.
    mutating func addFreePages(of snapshot: DataFileSnapshot) throws {
      var (free, isWhole): (Set<UInt64>, Bool) = ([], true)
      numbers = try TreeScan.run(
        from: snapshot.meta.freePages.root, in: snapshot, hasIntegerKeys: true, recordsPages: true
      ) { item in
        if case .entry(_, .value(let bytes)) = item, let pages = UsedPages.list(bytes) {
          free.formUnion(pages)
        } else {
          isWhole = false
        }
        return true
      }
      numbers.formUnion(free)
      areCertain = areCertain && isWhole
    }

    /// Reads a list of page numbers that begins with their count, or returns `nil` if it is damaged.
    static func list(_ bytes: [UInt8]) -> [UInt64]? {
      let list = PageBytes(bytes[...])
      guard let count: UInt64 = list.integer(at: 0), count < UInt64(bytes.count / 8) else { return nil }
      return (0..<Int(count)).compactMap { list.integer(at: 8 + 8 * $0) }
    }

    /// Adds the readable pages of all named databases and of their list.
    ///
    /// - Returns: The databases with damage.
    mutating func addTrees(of snapshot: DataFileSnapshot) throws -> [Tree] {
      var (records, isWhole): ([(StoreKey, DatabaseRecord)], Bool) = ([], true)
      numbers.formUnion(
        try TreeScan.run(from: snapshot.meta.main.root, in: snapshot, readsValues: false, recordsPages: true) { item in
          switch item {
          case .entry(let key, .database(let record)): records.append((key, record))
          case .entry: break
          case .damage: isWhole = false
          }
          return true
        })
      var trees: [Tree] = []
      for (key, record) in records {
        // The order of the keys is unknown.
        guard record.flags == 0 else {
          isWhole = false
          continue
        }
        var tree = Tree(key: key, entryCount: record.entryCount)
        numbers.formUnion(
          try TreeScan.run(from: record.root, in: snapshot, readsValues: false, recordsPages: true) { item in
            switch item {
            case .entry: tree.readableCount += 1
            case .damage(_, let lost): tree.lost += [lost].compactMap(\.self)
            }
            return true
          })
        if !tree.lost.isEmpty { trees.append(tree) }
      }
      areCertain = areCertain && isWhole
      return trees
    }
  }

  // MARK: Leaves

  /// Returns the leaves that are neither used nor free.
  private static func leaves(in snapshot: DataFileSnapshot, without used: Set<UInt64>) throws -> [Leaf] {
    var leaves: [Leaf] = []
    var number: UInt64 = 2
    while number <= snapshot.meta.lastPage, number < snapshot.pageCount {
      defer { number += 1 }
      guard !used.contains(number) else { continue }
      switch try snapshot.unreachedPage(number) {
      case .other: break
      case .value(let count):
        // The pages that follow have the bytes of the value, which can look like a leaf, unless the count is damaged.
        if count > 0, count <= snapshot.pageCount - number { number += count - 1 }
      case .leaf(let page):
        guard !isOfEnvironment(page, in: snapshot) else { continue }
        let keys = keys(of: page)
        guard let first = keys.first, let last = keys.last else { continue }
        leaves.append(
          Leaf(page: number, first: first, last: last, count: keys.count, transaction: page.transaction))
      }
    }
    return leaves
  }

  /// Returns whether a leaf is one of the list of databases or of that of free pages, in a state before.
  private static func isOfEnvironment(_ page: DataPage, in snapshot: DataFileSnapshot) -> Bool {
    let nodes = (0..<page.nodeCount).compactMap(page.node)
    let lists = nodes.filter { node in
      // The key of a list of free pages is the number of a transaction.
      guard node.key.count == 8, let key: UInt64 = PageBytes(page.bytes[node.key]).integer(at: 0),
        key <= snapshot.meta.transaction
      else { return false }
      if case .value(let place) = node.content { return UsedPages.list(Array(page.bytes[place])) != nil }
      if case .overflow = node.content { return true }
      return false
    }
    return lists.count == nodes.count
      || nodes.contains {
        if case .database = $0.content { true } else { false }
      }
  }

  private static func keys(of page: DataPage) -> [StoreKey] {
    let nodes = (0..<page.nodeCount).map(page.node)
    return page.keys(of: nodes, within: .all, areIntegers: false).compactMap(\.self)
  }

  /// Sorts leaves by their keys, and removes those of which two have keys of the same range.
  ///
  /// - Returns: The removed leaves.
  private static func removeOverlapping(from leaves: inout [Leaf]) -> [Leaf] {
    leaves.sort { $0.first < $1.first }
    var (kept, removed): ([Leaf], [Leaf]) = ([], [])
    var group: [Leaf] = []
    var end: StoreKey?
    func endGroup() {
      if group.count == 1 { kept += group } else { removed += group }
      group = []
    }
    for leaf in leaves {
      if let last = end, leaf.first > last { endGroup() }
      group.append(leaf)
      end = end.map { max($0, leaf.last) } ?? leaf.last
    }
    endGroup()
    leaves = kept
    return removed
  }

  /// Returns the entries of leaves with keys that no certain part covers, the newest of each key where that is known.
  private static func parts(
    of leaves: [Leaf], in snapshot: DataFileSnapshot, besides certain: [UnreachedLeaves.Part]
  ) throws -> [UnreachedLeaves.Part] {
    var pages: [StoreKey: UInt64] = [:]
    for leaf in leaves.sorted(by: { ($1.transaction ?? 0, $0.page) < ($0.transaction ?? 0, $1.page) }) {
      guard case .leaf(let page) = try snapshot.unreachedPage(leaf.page) else { continue }
      let covering = certain.filter { $0.keys.overlaps(leaf.keys) }
      for key in keys(of: page) where pages[key] == nil && !covering.contains(where: { $0.keys.contains(key) }) {
        pages[key] = leaf.page
      }
    }
    var parts: [UnreachedLeaves.Part] = []
    for (key, page) in pages.sorted(by: { $0.key < $1.key }) {
      if let part = parts.last, part.page == page {
        parts[parts.count - 1] = UnreachedLeaves.Part(page: page, keys: part.keys.covering(.only(key)))
      } else {
        parts.append(UnreachedLeaves.Part(page: page, keys: .only(key)))
      }
    }
    return parts
  }
}
#endif
