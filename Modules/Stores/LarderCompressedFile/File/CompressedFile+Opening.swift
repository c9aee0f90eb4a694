#if Compression
import Larder
import LarderCompression
import LarderFiles

extension CompressedFile {
  /// Opens the file, or creates it if it is missing.
  ///
  /// An existing file is only read.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of the store.
  ///   - contents: The content of the file as readers see it.
  ///   - cacheSize: The maximum size of the block cache, in bytes.
  ///   - newCodecName: The name of the codec of a new file.
  ///   - findsPossiblyOlder: A Boolean value that indicates whether entries are found that unknown changes may have
  ///     replaced. Defaults to `false`.
  ///   - isAbandoned: A closure that returns whether no store uses the file any more. Defaults to never.
  /// - Throws: ``StoreError``.
  static func open(
    _ configuration: StoreFileConfiguration, contents: SharedContent<CompressedFileContent>, cacheSize: Int,
    newCodecName: String, findsPossiblyOlder: Bool = false, isAbandoned: @escaping @Sendable () -> Bool = { false }
  ) throws -> CompressedFile {
    try configuration.reportingFileErrors(during: .open, message: "the store could not be opened") {
      var (path, lock, openedFiles) = try configuration.takeLock { path in
        try refuseForeignFile(at: path, configuration)
      }
      let inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }
      let fileSystem = configuration.fileSystem
      if try fileSystem.attributes(at: path) == nil {
        // Not in place, because a crash would leave a damaged file.
        try fileSystem.replaceFile(at: path) { try $0.write(newFile(codecName: newCodecName)) }
      }
      let isWritten = configuration.access == .readWrite
      let file = try fileSystem.open(path, isWritten ? .readWrite : .read)
      let attributes = try file.attributes()
      try configuration.checkKind(attributes, of: path, isWritten: isWritten)
      openedFiles.note(attributes.identity, at: path, as: .data)
      var found = try scan(
        file, of: path, size: attributes.size, configuration, inflaters, during: .open)
      if findsPossiblyOlder { found.index.findPossiblyOlder() }
      let opened = CompressedFile(
        configuration: configuration, contents: contents, inflaters: inflaters, cacheSize: cacheSize,
        isAbandoned: isAbandoned, path: path, lock: lock, opened: openedFiles, codecName: found.head.codecName,
        file: file,
        head: found.head, isWhole: found.isWhole, layout: found.layout,
        unnoted: UnnotedBlocks(found.unnoted, from: found.notesEnd),
        isUncertain: !found.isClosed, sizeAtOpening: attributes.size)
      opened.show(found.index, of: file, with: found.head)
      return opened
    }
  }

  /// Returns the bytes of a store without entries.
  private static func newFile(codecName: String) -> [UInt8] {
    let head = FileHead(codecName: codecName)
    let size = head.end + Int64(BlockFrame.endOfFileMarker.count)
    return head.block + head.block(of: .closed(end: head.end, batch: 0, size: size)) + BlockFrame.endOfFileMarker
  }

  /// Refuses the file of another program before a lock file is created beside it.
  ///
  /// A file that does not begin like a store is read to its end, because it may be a store whose beginning is damaged.
  private static func refuseForeignFile(at path: String, _ configuration: StoreFileConfiguration) throws {
    let file = try configuration.fileSystem.open(path, .read)
    let size = try file.attributes().size
    let start = try file.readAll(from: 0, upTo: min(size, Int64(BlockFrame.maximumSize)))
    guard FileIdentity.foreignFile(beginning: start) != nil else { return }
    let inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }
    _ = try scan(file, of: path, size: size, configuration, inflaters, during: .open)
  }

  /// Reads a whole file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - path: The path of the file.
  ///   - size: The size of the file, in bytes.
  ///   - known: The end of its blocks and the last of their batches, if known.
  ///   - configuration: The configuration of the store.
  ///   - inflaters: The streams that decompress the blocks.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``; ``FileError``.
  static func scan(
    _ file: any OpenStoreFile, of path: String, size: Int64, upTo known: (end: Int64, batch: UInt64)? = nil,
    _ configuration: StoreFileConfiguration, _ inflaters: StreamPool<ZlibInflater>, during operation: StoreOperation
  ) throws -> FoundFile {
    do {
      return try FileScan.scan(size: size, upTo: known, inflaters: inflaters) { range in
        // For a reader, bytes that the disk cannot read count as lost. A writer fails, because the bytes that it
        // appends could be lost too.
        configuration.access == .readWrite && operation == .open
          ? try file.readAll(from: range.lowerBound, upTo: range.upperBound)
          : try file.readable(from: range.lowerBound, upTo: range.upperBound).bytes
      }
    } catch let problem as FileProblem {
      throw configuration.error(problem.code, during: operation, "\(path) \(problem.message)")
    } catch let error as ZlibError {
      throw StoreError(error, during: operation, store: configuration.name)
    }
  }
}
#endif
