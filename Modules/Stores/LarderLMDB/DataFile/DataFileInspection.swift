#if LMDB
import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Looks at a data file before LMDB does, which trusts what it maps.
///
/// It only reads. Nothing in this process may have the environment open: to close any descriptor of a file gives up the
/// process's locks on it.
enum DataFileInspection {
  /// Refuses a file that LMDB cannot open safely.
  ///
  /// - Parameters:
  ///   - path: The data file; an empty one is as good as none.
  ///   - store: The name of the environment, for errors.
  /// - Throws: ``StoreError``.
  static func check(_ path: String, store: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw EnvironmentFiles.error(errno, "the data file cannot be opened", store: store)
    }
    defer { close(descriptor) }
    // Another process may be writing: what looks wrong is looked at again while the file changes, a few times.
    var previous: DataFileHeader?
    for remaining in (0..<8).reversed() {
      let beginning = try read(descriptor, offset: 0, count: DataFileHeader.maximumSize, store: store)
      if beginning.isEmpty { return }
      let header: DataFileHeader
      do {
        header = try DataFileHeader(beginning)
      } catch {
        throw StoreError(refusal: error, store: store)
      }
      let size = lseek(descriptor, 0, SEEK_END)
      guard size >= 0 else { throw EnvironmentFiles.error(errno, "the data file cannot be read", store: store) }
      let pages = DataFilePages(header: header, fileSize: Int64(size)) {
        try read(descriptor, offset: $0, count: $1, store: store)
      }
      if pages.isComplete { return }
      guard let missing = try pages.firstMissingPage() else { return }
      if header == previous || remaining == 0 {
        throw StoreError(
          .corrupted, during: .open, store: store,
          message: "the data file is truncated or damaged: it has \(size) bytes, and page \(missing) of "
            + "\(header.lastPage), of \(header.pageSize) bytes each, is not in it")
      }
      previous = header
    }
  }

  private static func read(_ descriptor: Int32, offset: Int64, count: Int, store: String) throws -> [UInt8] {
    var failure: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count {
        let result = pread(
          descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, off_t(offset) + off_t(filled))
        if result < 0 && errno == EINTR { continue }
        if result < 0 { failure = errno }
        if result <= 0 { break }
        filled += result
      }
    }
    guard failure == 0 else {
      throw EnvironmentFiles.error(failure, "the data file cannot be read", store: store)
    }
    return bytes
  }
}

extension StoreError {
  /// Makes the error of a data file that is not what it should be.
  fileprivate init(refusal: DataFileHeader.Refusal, store: String) {
    let (code, message): (Code, String) =
      switch refusal {
      case .truncated: (.corrupted, "the data file is truncated: it ends before its second meta page does")
      case .otherByteOrder: (.unsupported, "the data file was written on a machine of the other byte order")
      case .otherWordSize: (.unsupported, "the data file was written by an LMDB of 32 bits")
      case .otherVersion(let version):
        (
          .versionMismatch,
          "the data file has version \(version) of LMDB's format, this is for version \(DataFileHeader.version)"
        )
      case .unrecognized: (.unrecognizedFormat, "the file is no LMDB data file: its magic number is missing")
      case .damaged: (.corrupted, "the data file is damaged: its meta pages contradict themselves")
      }
    self.init(code, during: .open, store: store, message: message)
  }
}
#endif
