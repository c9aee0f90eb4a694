#if LMDB
import Larder
import LarderFiles

/// Reads the pages of a data file of LMDB 0.9 or 1.0 without a memory map and without the library.
///
/// Nothing in the file is trusted. Each page is read when it is needed, and each size is compared with the size of the file.
///
/// LMDB locks only the lock file, so opening and closing the data file releases no lock of this process.
final class DataFileReader: Sendable {
  private let file: any OpenStoreFile

  /// The name of the environment in errors.
  let store: String

  /// The identity of the file.
  let identity: FileAttributes.Identity

  /// Opens a data file.
  ///
  /// - Parameters:
  ///   - path: The path of the data file.
  ///   - store: The name of the environment in errors.
  ///   - fileSystem: The file system. Defaults to the real one.
  /// - Throws: ``StoreError``: the errors of `DataFileHeader` if both meta pages are damaged; `unsupported` if the pages are
  ///   encrypted; `ioFailed`.
  init(_ path: String, store: String, in fileSystem: some StoreFileSystem = POSIXFileSystem()) throws {
    self.store = store
    do {
      file = try fileSystem.open(path, .read)
      identity = try file.attributes().identity
    } catch {
      throw StoreError(error, during: .open, store: store, message: "the data file cannot be read")
    }
    _ = try latestSnapshot()
  }

  /// Returns the meta pages as they are now.
  ///
  /// - Throws: ``StoreError``.
  func metaPages() throws -> MetaPage.Pair {
    MetaPage.pair(in: try beginning())
  }

  /// Returns the state after the latest transaction.
  ///
  /// - Parameter usesPrevious: A Boolean value that indicates whether the state before is returned if the list of
  ///   databases is damaged. No transaction overwrites it, and each one writes a new list. Defaults to `false`.
  /// - Throws: ``StoreError``; `FileError`.
  func latestSnapshot(usesPrevious: Bool = false) throws -> DataFileSnapshot {
    let beginning = try beginning()
    let pair = MetaPage.pair(in: beginning)
    guard let newest = pair.valid.first else {
      _ = try DataFileHeader(beginning, store: store, readable: nil)
      throw StoreError(
        .corrupted, during: .open, store: store,
        message: "both meta pages of the data file are damaged; restore a backup")
    }
    guard !newest.isEncrypted else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the pages of the data file are encrypted, which LarderLMDB does not support")
    }
    let latest = DataFileSnapshot(meta: newest, damagedMetaPages: pair.damaged, file: file, fileSize: try size())
    guard usesPrevious, pair.valid.count == 2, try latest.lacksDatabases() else { return latest }
    return DataFileSnapshot(meta: pair.valid[1], damagedMetaPages: [], file: file, fileSize: latest.fileSize)
  }

  /// Returns whether the pages of a snapshot may be those of a later state by now.
  ///
  /// A transaction writes to no page of the state before. The one after it may reuse them, but not before the first has
  /// written its meta page.
  ///
  /// - Throws: ``StoreError``.
  func isOutdated(_ snapshot: DataFileSnapshot) throws -> Bool {
    guard let newest = try metaPages().valid.first else { return true }
    return newest.transaction > snapshot.meta.transaction + 1 || newest.transaction < snapshot.meta.transaction
  }

  private func beginning() throws -> [UInt8] {
    do {
      return try file.readable(from: 0, upTo: Int64(DataFileHeader.maximumSize)).bytes
    } catch {
      throw StoreError(error, during: .read, store: store, message: "the data file cannot be read")
    }
  }

  private func size() throws -> Int64 {
    do {
      return try file.size()
    } catch {
      throw StoreError(error, during: .read, store: store, message: "the data file cannot be read")
    }
  }

  /// Closes the file.
  ///
  /// It was only read, so an error would mean nothing.
  func close() {
    do throws(FileError) {
      try file.close()
    } catch {}
  }
}

/// The state of a data file after one transaction.
struct DataFileSnapshot {
  let meta: MetaPage
  /// The numbers of the damaged meta pages.
  let damagedMetaPages: [UInt64]
  fileprivate let file: any OpenStoreFile
  fileprivate let fileSize: Int64

  /// The number of whole pages in the file.
  var pageCount: UInt64 { UInt64(max(0, fileSize)) / UInt64(meta.pageSize) }

  /// Returns whether the list of databases is damaged.
  fileprivate func lacksDatabases() throws -> Bool {
    var isDamaged = false
    try TreeScan.run(from: meta.main.root, in: self, readsValues: false) { item in
      if case .damage(_, _?) = item { isDamaged = true }
      return true
    }
    return isDamaged
  }

  /// Reads a page of a tree.
  ///
  /// - Throws: ``PageDamage``; `FileError` if the file cannot be read, except for an unreadable sector.
  func page(_ number: UInt64) throws -> DataPage {
    try DataPage(number, bytes(of: number, count: 1), meta.format)
  }

  /// Reads the value on pages of its own.
  ///
  /// - Throws: ``PageDamage``; `FileError`.
  func value(onPage number: UInt64, size: Int) throws -> [UInt8] {
    let header = meta.format.pageHeaderSize
    let count = pageCount(ofValue: size)
    let bytes = try bytes(of: number, count: count)
    guard let ownCount = valuePageCount(bytes.prefix(header), number), ownCount >= count else {
      throw PageDamage.noValue(number)
    }
    return Array(bytes[header..<header + size])
  }

  /// Returns the pages of a value on pages of its own, without reading it.
  ///
  /// - Throws: ``PageDamage``; `FileError`.
  func pages(ofValueOnPage number: UInt64, size: Int) throws -> Range<UInt64> {
    let count = pageCount(ofValue: size)
    guard let ownCount = valuePageCount(try bytes(of: number, count: 1)[...], number), ownCount >= count,
      number + count <= pageCount
    else { throw PageDamage.noValue(number) }
    return number..<number + count
  }

  /// Returns the number of pages of a value.
  ///
  /// It is not that in the page or in the node, which say the same.
  private func pageCount(ofValue size: Int) -> UInt64 {
    UInt64((meta.format.pageHeaderSize + size - 1) / meta.pageSize + 1)
  }

  /// Returns the number of pages according to the first page of a value, or `nil` if it is another page.
  private func valuePageCount(_ bytes: ArraySlice<UInt8>, _ number: UInt64) -> UInt64? {
    let page = PageBytes(bytes)
    guard page.integer(at: 0) == number, let flags: UInt16 = page.integer(at: 10 + meta.format.shift),
      flags & DataPage.Kind.overflow.rawValue != 0, let count: UInt32 = page.integer(at: 12 + meta.format.shift)
    else { return nil }
    return UInt64(count)
  }

  /// A page that nothing refers to.
  enum UnreachedPage {
    case leaf(DataPage)
    /// The first page of a value, and the number of its pages.
    case value(pageCount: UInt64)
    /// A branch page, or one that cannot be read.
    case other
  }

  /// Reads a page that nothing refers to.
  ///
  /// - Throws: `FileError`.
  func unreachedPage(_ number: UInt64) throws -> UnreachedPage {
    do {
      let bytes = try bytes(of: number, count: 1)
      if let count = valuePageCount(bytes[...], number) { return .value(pageCount: count) }
      let page = try DataPage(number, bytes, meta.format)
      return page.kind == .leaf ? .leaf(page) : .other
    } catch is PageDamage {
      return .other
    }
  }

  private func bytes(of number: UInt64, count: UInt64) throws -> [UInt8] {
    guard number >= 2, number <= meta.lastPage, number < pageCount, count <= pageCount - number else {
      throw PageDamage(page: number, problem: "is not in the file")
    }
    let start = Int64(number) * Int64(meta.pageSize)
    let end = start + Int64(count) * Int64(meta.pageSize)
    let bytes: [UInt8]
    do {
      bytes = try file.readAll(from: start, upTo: end)
    } catch  where error.isDiskFailure {
      throw PageDamage(page: number, problem: "cannot be read from the disk")
    }
    guard bytes.count == Int(end - start) else { throw PageDamage(page: number, problem: "is not in the file") }
    return bytes
  }
}

extension PageDamage {
  /// The damage of a page that does not begin a large value.
  fileprivate static func noValue(_ page: UInt64) -> PageDamage {
    PageDamage(page: page, problem: "does not hold the large value that it should")
  }
}
#endif
