#if LMDB
/// The record of a database in a meta page, or in the node of a named database.
///
/// Source: `struct MDB_db` in `mdb.c` of LMDB 0.9 and 1.0.
struct DatabaseRecord: Equatable {
  static let size = 48

  /// The flags that the database was created with, such as that of several values per key.
  let flags: UInt16
  /// The number of its entries.
  let entryCount: UInt64
  /// The root page of its tree, or `nil` if it is empty.
  let root: UInt64?

  /// Reads the record at an offset, or returns `nil` if the bytes end before it does.
  init?(_ bytes: PageBytes, at offset: Int) {
    guard
      let flags: UInt16 = bytes.integer(at: offset + 4),
      let entryCount: UInt64 = bytes.integer(at: offset + 32),
      let root: UInt64 = bytes.integer(at: offset + 40)
    else { return nil }
    self.flags = flags
    self.entryCount = entryCount
    self.root = root == UInt64.max ? nil : root
  }
}

/// A valid meta page of a data file: the state after one transaction.
struct MetaPage: Equatable {
  private static let metaFlag: UInt16 = 0x08
  private static let encryptionFlag: UInt16 = 0x2000
  private static let pageSizes = (8...16).map { 1 << $0 }

  /// The fields that a library checks, too.
  private let header: DataFileHeader
  /// The database of free pages.
  let freePages: DatabaseRecord
  /// The database that lists the names of all others.
  let main: DatabaseRecord
  /// A Boolean value that indicates whether the other pages are encrypted, which LMDB 1.0 can do.
  let isEncrypted: Bool

  var format: DataFileFormat { header.format }
  /// The size of a page in bytes.
  var pageSize: Int { header.pageSize }
  /// The number of the last page in use.
  var lastPage: UInt64 { header.lastPage }
  /// The number of the transaction that wrote the page.
  var transaction: UInt64 { header.transaction }

  /// The meta pages of a data file.
  struct Pair: Equatable {
    /// The valid ones, the newer one first.
    var valid: [MetaPage]
    /// The numbers of the damaged ones, 0 or 1.
    var damaged: [UInt64]
  }

  /// Reads the meta pages at the beginning of a data file.
  ///
  /// If the first one is damaged, the size of a page is unknown, and the second one is looked for at all of its possible
  /// places.
  ///
  /// - Parameter bytes: The first `DataFileHeader.maximumSize` bytes of the file, or the whole file if it is shorter.
  static func pair(in bytes: [UInt8]) -> Pair {
    let first = MetaPage(bytes[...], number: 0)
    let second = (first.map { [$0.pageSize] } ?? pageSizes).lazy.compactMap { size in
      bytes.count > size ? MetaPage(bytes[size...], number: 1) : nil
    }
    .first { $0.pageSize == first?.pageSize ?? $0.pageSize && $0.format == first?.format ?? $0.format }
    // Of two meta pages of the same transaction, LMDB uses the first.
    let valid = [first, second].compactMap { $0 }.sorted { $0.transaction > $1.transaction }
    return Pair(valid: valid, damaged: [first, second].indices.filter { [first, second][$0] == nil }.map(UInt64.init))
  }

  /// Reads a meta page, or returns `nil` if it is damaged.
  private init?(_ metaPage: ArraySlice<UInt8>, number: UInt64) {
    let bytes = PageBytes(metaPage)
    guard
      let format = DataFileFormat.all.first(where: {
        bytes.integer(at: $0.pageHeaderSize) == DataFileHeader.magic
          && bytes.integer(at: $0.pageHeaderSize + 4) == $0.version
      }),
      bytes.integer(at: 0) == number,
      let pageFlags: UInt16 = bytes.integer(at: 10 + format.shift), pageFlags & MetaPage.metaFlag != 0,
      let header = DataFileHeader(metaPage: bytes, format), MetaPage.pageSizes.contains(header.pageSize),
      // The record of the free pages has the size of a page and the flags of the environment in its first fields.
      let environmentFlags: UInt16 = bytes.integer(at: 44 + format.shift),
      let freePages = DatabaseRecord(bytes, at: 40 + format.shift),
      let main = DatabaseRecord(bytes, at: 88 + format.shift),
      header.lastPage >= 1, header.lastPage < DataFileHeader.maximumPageCount,
      header.roots.allSatisfy({ (2...max(2, header.lastPage)).contains($0) })
    else { return nil }
    self.header = header
    self.freePages = freePages
    self.main = main
    isEncrypted = format != .version1 && environmentFlags & MetaPage.encryptionFlag != 0
  }
}
#endif
