#if LMDB
/// Finds out whether every page that the trees of an LMDB data file lead to is in the file.
///
/// LMDB maps the file and trusts it: to touch a page behind its end ends the process. A file may be shorter than its last
/// page says, since LMDB does not write pages that a transaction took and gave back; so only the trees tell whether
/// something is missing. Source of the layout: `struct MDB_page`, `MDB_node` and `MDB_db` in `mdb.c` of LMDB 0.9.
struct DataFilePages {
  private enum PageFlags {
    static let branch: UInt16 = 0x01
    static let leaf: UInt16 = 0x02
    static let overflow: UInt16 = 0x04
    static let fixedSizeValues: UInt16 = 0x20
  }

  private enum NodeFlags {
    static let overflow: UInt16 = 0x01
    static let database: UInt16 = 0x02
  }

  private let header: DataFileHeader
  private let fileSize: Int64
  private let read: (_ offset: Int64, _ count: Int) throws -> [UInt8]

  /// Prepares a look at a file.
  ///
  /// - Parameters:
  ///   - header: What its meta pages say.
  ///   - fileSize: Its size in bytes.
  ///   - read: Reads a part of it, fewer bytes where it ends.
  init(
    header: DataFileHeader, fileSize: Int64, read: @escaping (_ offset: Int64, _ count: Int) throws -> [UInt8]
  ) {
    self.header = header
    self.fileSize = fileSize
    self.read = read
  }

  /// Whether the file is long enough for its last page, so that no page can be missing.
  var isComplete: Bool {
    header.lastPage < pageCount
  }

  /// The number of a page that a tree leads to and that is not in the file, or that is no page of a tree; `nil` where all is well.
  ///
  /// - Throws: What reading throws.
  func firstMissingPage() throws -> UInt64? {
    var visited: Set<UInt64> = []
    var pending = header.roots
    while let page = pending.popLast() {
      // Two ways to one page, or a circle: no tree.
      guard visited.insert(page).inserted else { return page }
      guard let children = try children(of: page) else { return page }
      for overflow in children.overflow {
        guard try isOverflowComplete(overflow) else { return overflow }
      }
      pending += children.tree
    }
    return nil
  }

  /// How many whole pages the file has.
  private var pageCount: UInt64 { UInt64(fileSize) / UInt64(header.pageSize) }

  private func bytes(ofPage page: UInt64) throws -> PageBytes? {
    guard page <= header.lastPage, page < pageCount else { return nil }
    let bytes = try read(Int64(page) * Int64(header.pageSize), header.pageSize)
    guard bytes.count == header.pageSize else { return nil }
    return PageBytes(bytes[...])
  }

  /// The pages that a page of a tree leads to, or `nil` where it is none.
  private func children(of page: UInt64) throws -> (tree: [UInt64], overflow: [UInt64])? {
    guard
      let bytes = try bytes(ofPage: page), let number: UInt64 = bytes.integer(at: 0), number == page,
      let flags: UInt16 = bytes.integer(at: 10), let lower: UInt16 = bytes.integer(at: 12)
    else { return nil }
    // Pages of values of one size hold nothing but them.
    if flags & PageFlags.fixedSizeValues != 0 { return ([], []) }
    let isBranch = flags & PageFlags.branch != 0
    guard isBranch || flags & PageFlags.leaf != 0 else { return nil }
    var tree: [UInt64] = []
    var overflow: [UInt64] = []
    for index in 0..<max(0, (Int(lower) - DataFileHeader.pageHeaderSize) / 2) {
      guard
        let place: UInt16 = bytes.integer(at: DataFileHeader.pageHeaderSize + 2 * index),
        let low: UInt16 = bytes.integer(at: Int(place)), let high: UInt16 = bytes.integer(at: Int(place) + 2),
        let nodeFlags: UInt16 = bytes.integer(at: Int(place) + 4),
        let keySize: UInt16 = bytes.integer(at: Int(place) + 6)
      else { return nil }
      let data = Int(place) + 8 + Int(keySize)
      if isBranch {
        tree.append(UInt64(low) | UInt64(high) << 16 | UInt64(nodeFlags) << 32)
      } else if nodeFlags & NodeFlags.overflow != 0 {
        guard let page: UInt64 = bytes.integer(at: data) else { return nil }
        overflow.append(page)
      } else if nodeFlags & NodeFlags.database != 0 {
        // The record of a database ends with its root; one without entries has none.
        guard let root: UInt64 = bytes.integer(at: data + 40) else { return nil }
        if root != UInt64.max { tree.append(root) }
      }
    }
    return (tree, overflow)
  }

  /// Whether all pages of a value that has pages of its own are in the file.
  private func isOverflowComplete(_ page: UInt64) throws -> Bool {
    guard
      let bytes = try bytes(ofPage: page), let flags: UInt16 = bytes.integer(at: 10), flags & PageFlags.overflow != 0,
      let count: UInt32 = bytes.integer(at: 12)
    else { return false }
    return page + UInt64(count) <= min(pageCount, header.lastPage + 1)
  }
}
#endif
