#if LMDB
import Larder
import LarderFiles

/// Checks a data file before LMDB maps it, because LMDB trusts the content.
///
/// The check only reads. Nothing in this process may have the environment open, because closing any descriptor of a
/// file releases the process's locks on that file.
enum DataFileInspection {
  /// Throws an error if LMDB cannot open a file safely.
  ///
  /// - Parameters:
  ///   - path: The path of the data file. An empty file passes.
  ///   - store: The name of the environment, for errors.
  /// - Throws: ``StoreError``.
  static func check(_ path: String, store: String) throws {
    do {
      let file = try POSIXFileSystem().open(path, .read)
      let checking = Result { try check(file, store: store) }
      try file.close()
      try checking.get()
    } catch let error as FileError {
      throw StoreError(error, during: .open, store: store, message: "the data file cannot be read")
    }
  }

  private static func check(_ file: any OpenFile, store: String) throws {
    // Another process may be writing. While the file changes, an apparent error is checked again, a few times.
    var previous: DataFileHeader?
    for remaining in (0..<8).reversed() {
      let beginning = try file.readAll(from: 0, upTo: Int64(DataFileHeader.maximumSize))
      if beginning.isEmpty { return }
      let header: DataFileHeader
      do {
        header = try DataFileHeader(beginning)
      } catch {
        throw StoreError(refusal: error, store: store)
      }
      let size = try file.attributes().size
      let roots = DataFileRoots(header: header, fileSize: size) { offset, count in
        try file.readAll(from: offset, upTo: offset + Int64(count))
      }
      guard let missing = try roots.firstMissing() else { return }
      if header == previous || remaining == 0 {
        throw StoreError(
          .corrupted, during: .open, store: store,
          message:
            "the data file is truncated or damaged: it has \(size) bytes and lacks the root of a tree, page \(missing) "
            + "of \(header.lastPage), at \(header.pageSize) bytes per page; restore a backup")
      }
      previous = header
    }
  }
}

extension StoreError {
  /// Creates the error for a rejected data file.
  fileprivate init(refusal: DataFileHeader.Refusal, store: String) {
    let (code, message): (Code, String) =
      switch refusal {
      case .truncated: (.corrupted, "the data file is truncated: it ends before its second meta page does")
      case .otherByteOrder: (.unsupported, "the data file was written on a machine with a different byte order")
      case .otherWordSize: (.unsupported, "the data file was written by a 32-bit build of LMDB")
      case .otherVersion(let version):
        (
          .versionMismatch,
          "the data file has version \(version) of LMDB's format; only version \(DataFileHeader.version) is supported"
        )
      case .unrecognized: (.unrecognizedFormat, "the file is not an LMDB data file: its magic number is missing")
      case .damaged: (.corrupted, "the data file is damaged: its meta pages contradict themselves")
      }
    self.init(code, during: .open, store: store, message: message)
  }
}

/// Checks whether the tree roots of an LMDB data file are inside the file.
///
/// LMDB maps the file and trusts it: accessing a page beyond its end ends the process. A file may be shorter than its
/// last page number implies, because LMDB does not write pages that a transaction allocated and freed again. Only a
/// walk over all pages could tell whether any other page is missing. This check therefore reads a bounded number of
/// pages: the roots that the newer meta page names, and the roots of the named databases, if a single page lists them
/// all. A truncated file has usually lost one of them, because every write moves the root of its tree, mostly towards
/// the end.
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
  ///   - header: The header of the file.
  ///   - fileSize: The size of the file in bytes.
  ///   - read: A closure that reads part of the file; it returns fewer bytes if the file ends earlier.
  init(
    header: DataFileHeader, fileSize: Int64, read: @escaping (_ offset: Int64, _ count: Int) throws -> [UInt8]
  ) {
    self.header = header
    self.fileSize = fileSize
    self.read = read
  }

  /// Returns the number of a root page that is missing or holds another page, or `nil` if all roots are present.
  ///
  /// - Throws: The error that `read` throws.
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

  /// The number of whole pages in the file.
  private var pageCount: UInt64 { UInt64(fileSize) / UInt64(header.pageSize) }

  /// Returns the bytes of a page, or `nil` if it is not in the file.
  private func page(_ number: UInt64) throws -> PageBytes? {
    guard number <= header.lastPage, number < pageCount else { return nil }
    let bytes = try read(Int64(number) * Int64(header.pageSize), header.pageSize)
    let page = PageBytes(bytes[...])
    guard bytes.count == header.pageSize, let own: UInt64 = page.integer(at: 0), own == number else { return nil }
    return page
  }

  /// Returns the roots of the named databases listed in a page, if it is a leaf.
  private func databaseRoots(in page: PageBytes) -> [UInt64] {
    guard let flags: UInt16 = page.integer(at: 10), flags & DataFileRoots.leafFlag != 0,
      let lower: UInt16 = page.integer(at: 12)
    else { return [] }
    return (0..<max(0, (Int(lower) - DataFileHeader.pageHeaderSize) / 2)).compactMap { index in
      guard
        let place: UInt16 = page.integer(at: DataFileHeader.pageHeaderSize + 2 * index),
        let nodeFlags: UInt16 = page.integer(at: Int(place) + 4), nodeFlags & DataFileRoots.databaseFlag != 0,
        let keySize: UInt16 = page.integer(at: Int(place) + 6),
        // The record of a database ends with its root; an empty database has none.
        let root: UInt64 = page.integer(at: Int(place) + 8 + Int(keySize) + 40), root != UInt64.max
      else { return nil }
      return root
    }
  }
}
#endif
