#if LMDB
import Larder

/// The two meta pages at the beginning of an LMDB data file, as LMDB 0.9 writes them on machines of 64 bits.
///
/// A page begins with a header of 16 bytes; a meta page goes on with magic number and version (4 bytes each), an address
/// and the map's size (8 each), the records of the two databases that every file has (48 each, the first of which begins
/// with the size of a page), the last page's number and the transaction's (8 each), all in the order of the machine.
/// Source: `struct MDB_meta` and `struct MDB_db` in `mdb.c` of LMDB 0.9.
struct DataFileHeader: Equatable {
  /// What a data file turned out to be instead.
  enum Refusal: Error, Equatable {
    /// It ends within the meta pages.
    case truncated
    case otherByteOrder
    case otherWordSize
    case otherVersion(UInt32)
    /// It is no LMDB file.
    case unrecognized
    /// Its meta pages contradict themselves.
    case damaged
  }

  static let magic: UInt32 = 0xBEEF_C0DE
  static let version: UInt32 = 1
  static let pageHeaderSize = 16
  static let metaSize = 136

  /// As many bytes of a file as are needed: both meta pages, of the largest pages that there are.
  static let maximumSize = maximumPageSize + pageHeaderSize + metaSize
  static let maximumPageSize = 1 << 16

  /// More pages than any file has: the number of bytes still fits into an integer.
  static let maximumPageCount: UInt64 = 1 << 45

  /// The size of a page in bytes.
  let pageSize: Int
  /// The number of the last page in use.
  let lastPage: UInt64
  /// The transaction that wrote this.
  let transaction: UInt64
  /// The first pages of the tree of free pages and of the tree of databases; `nil` where there is none yet.
  let roots: [UInt64]

  /// Reads what the newer of the two meta pages says.
  ///
  /// - Parameter bytes: The beginning of the file, `maximumSize` bytes unless it is shorter.
  init(_ bytes: [UInt8]) throws(Refusal) {
    let first = try DataFileHeader(metaPage: bytes[...])
    guard bytes.count >= first.pageSize + DataFileHeader.pageHeaderSize + DataFileHeader.metaSize else {
      throw .truncated
    }
    let second = try DataFileHeader(metaPage: bytes[first.pageSize...])
    guard first.pageSize == second.pageSize else { throw .damaged }
    self = first.transaction >= second.transaction ? first : second
  }

  private init(metaPage: ArraySlice<UInt8>) throws(Refusal) {
    let bytes = PageBytes(metaPage)
    guard let magic: UInt32 = bytes.integer(at: 16) else {
      throw metaPage.isEmpty || DataFileHeader.isBeginning(metaPage) ? .truncated : .unrecognized
    }
    guard magic == DataFileHeader.magic else {
      if magic.byteSwapped == DataFileHeader.magic { throw .otherByteOrder }
      // The header of a page is shorter on machines of 32 bits.
      guard let early: UInt32 = bytes.integer(at: 12) else { throw .unrecognized }
      if early == DataFileHeader.magic || early.byteSwapped == DataFileHeader.magic { throw .otherWordSize }
      throw .unrecognized
    }
    guard let version: UInt32 = bytes.integer(at: 20) else { throw .truncated }
    guard version == DataFileHeader.version else { throw .otherVersion(version) }
    guard
      let pageSize: UInt32 = bytes.integer(at: 40), let freeRoot: UInt64 = bytes.integer(at: 80),
      let mainRoot: UInt64 = bytes.integer(at: 128), let lastPage: UInt64 = bytes.integer(at: 136),
      let transaction: UInt64 = bytes.integer(at: 144)
    else { throw .truncated }
    guard
      pageSize >= 256, Int(pageSize) <= DataFileHeader.maximumPageSize, pageSize.nonzeroBitCount == 1,
      lastPage < DataFileHeader.maximumPageCount
    else { throw .damaged }
    self.pageSize = Int(pageSize)
    self.lastPage = lastPage
    self.transaction = transaction
    roots = [freeRoot, mainRoot].filter { $0 != UInt64.max }
  }

  /// Whether a few bytes can be the beginning of a meta page: page number 0, and no more than its flags behind it.
  private static func isBeginning(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.prefix(8).allSatisfy { $0 == 0 }
  }
}
#endif
