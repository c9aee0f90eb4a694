#if LMDB
import Larder
import LarderFiles

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
    // Another process may be writing: what looks wrong is looked at again while the file changes, a few times.
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
            "the data file is truncated or damaged: it has \(size) bytes, and the root of a tree, page \(missing) "
            + "of \(header.lastPage), of \(header.pageSize) bytes each, is not in it")
      }
      previous = header
    }
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
