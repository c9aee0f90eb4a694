#if LMDB
/// Finds out whether the roots of the trees of an LMDB data file are in the file.
///
/// LMDB maps the file and trusts it: to touch a page behind its end ends the process. A file may be shorter than its last
/// page says, since LMDB does not write pages that a transaction took and gave back; whether another page is missing only
/// a walk over all of them could tell. So this looks at a bounded number: the roots that the newer meta page names, and
/// those of the named databases, if one page lists them all. A file that was cut short has usually lost one of them:
/// every write moves the root of its tree, mostly towards the end.
/// Source of the layout: `struct MDB_page`, `MDB_node` and `MDB_db` in `mdb.c` of LMDB 0.9.
struct DataFileRoots {
  private static let leafFlag: UInt16 = 0x02
  private static let databaseFlag: UInt16 = 0x02

  private let header: DataFileHeader
  private let fileSize: Int64
  private let read: (_ offset: Int64, _ count: Int) throws -> [UInt8]

  /// Creates a check of a file.
  ///
  /// - Parameters:
  ///   - header: What its meta pages say.
  ///   - fileSize: Its size in bytes.
  ///   - read: Reads a part of it, fewer bytes if it ends before.
  init(
    header: DataFileHeader, fileSize: Int64, read: @escaping (_ offset: Int64, _ count: Int) throws -> [UInt8]
  ) {
    self.header = header
    self.fileSize = fileSize
    self.read = read
  }

  /// Returns the number of a root that is not in the file, or that another page is in the place of; `nil` if all are there.
  ///
  /// - Throws: What `read` throws.
  func firstMissing() throws -> UInt64? {
    if header.lastPage < pageCount { return nil }
    for root in header.roots {
      guard let page = try page(root) else { return root }
      for root in databaseRoots(in: page) {
        guard try self.page(root) != nil else { return root }
      }
    }
    return nil
  }

  /// How many whole pages the file has.
  private var pageCount: UInt64 { UInt64(fileSize) / UInt64(header.pageSize) }

  /// The bytes of a page, or `nil` if it is not in the file.
  private func page(_ number: UInt64) throws -> PageBytes? {
    guard number <= header.lastPage, number < pageCount else { return nil }
    let bytes = try read(Int64(number) * Int64(header.pageSize), header.pageSize)
    let page = PageBytes(bytes[...])
    guard bytes.count == header.pageSize, let own: UInt64 = page.integer(at: 0), own == number else { return nil }
    return page
  }

  /// The roots of the named databases that a page lists, if it is a leaf.
  private func databaseRoots(in page: PageBytes) -> [UInt64] {
    guard let flags: UInt16 = page.integer(at: 10), flags & DataFileRoots.leafFlag != 0,
      let lower: UInt16 = page.integer(at: 12)
    else { return [] }
    return (0..<max(0, (Int(lower) - DataFileHeader.pageHeaderSize) / 2)).compactMap { index in
      guard
        let place: UInt16 = page.integer(at: DataFileHeader.pageHeaderSize + 2 * index),
        let nodeFlags: UInt16 = page.integer(at: Int(place) + 4), nodeFlags & DataFileRoots.databaseFlag != 0,
        let keySize: UInt16 = page.integer(at: Int(place) + 6),
        // The record of a database ends with its root; one without entries has none.
        let root: UInt64 = page.integer(at: Int(place) + 8 + Int(keySize) + 40), root != UInt64.max
      else { return nil }
      return root
    }
  }
}
#endif
