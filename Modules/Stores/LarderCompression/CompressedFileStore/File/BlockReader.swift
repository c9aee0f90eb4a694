#if Compression
import LarderFiles
import Synchronization

/// Reads blocks of a file, and keeps the texts of those that were read last.
final class BlockReader: Sendable {
  /// Which file a block is read from.
  struct Source: Sendable {
    let file: any OpenFile
    /// Tells the file from those that compaction has put in its place or that it took the place of.
    let generation: Int
  }

  /// A block, or what it should be, is damaged.
  struct Damage: Error {
    let block: Int64
  }

  private struct Kept {
    var cache: BlockCache
    /// Whose blocks there are.
    var generation = 0
  }

  /// What is read at first; most blocks are not longer.
  private static let firstReadSize: Int64 = 8192

  let inflaters = StreamPool { () throws(ZlibError) in try Inflater() }
  private let kept: Mutex<Kept>

  /// Makes a reader.
  ///
  /// - Parameter cacheSize: The most bytes that the texts may take that are kept.
  init(cacheSize: Int) {
    kept = Mutex(Kept(cache: BlockCache(capacity: cacheSize)))
  }

  /// The bytes that the texts take that are kept.
  var cachedSize: Int { kept.withLock { $0.cache.size } }

  /// Forgets the blocks of all files but one.
  func keepOnly(_ generation: Int) {
    let old = kept.withLock { kept in
      let old = kept.cache
      kept.cache.removeAll()
      kept.generation = generation
      return old
    }
    // Released here, outside the lock.
    _ = consume old
  }

  /// Reads a block.
  ///
  /// - Parameters:
  ///   - offset: Where it begins.
  ///   - source: The file.
  ///   - isKept: Whether it is kept for later reads.
  /// - Throws: ``Damage``; ``FileError``.
  func block(at offset: Int64, of source: Source, isKept: Bool) throws -> BlockCache.Block {
    let found = kept.withLock { kept in
      kept.generation == source.generation ? kept.cache.block(at: offset) : nil
    }
    if let found { return found }
    let block = try read(at: offset, of: source.file)
    if isKept {
      let removed = kept.withLock { kept in
        kept.generation == source.generation ? kept.cache.insert(block, at: offset) : []
      }
      _ = consume removed
    }
    return block
  }

  private func read(at offset: Int64, of file: any OpenFile) throws -> BlockCache.Block {
    var bytes = try file.readAll(from: offset, upTo: offset + BlockReader.firstReadSize)
    let size = bytes.withUnsafeBytes { BlockHeader.size(at: $0) }
    do {
      guard let size else { throw BlockText.Damage() }
      if size > bytes.count { bytes += try file.readAll(from: offset + Int64(bytes.count), upTo: offset + Int64(size)) }
      let parsed = try bytes.withUnsafeBytes { bytes throws(BlockHeader.Problem) in try BlockHeader.parse(bytes) }
      let end = offset + Int64(parsed.blockSize)
      if parsed.blockSize > bytes.count {
        bytes += try file.readAll(from: offset + Int64(bytes.count), upTo: end)
      }
      let text = try bytes.withUnsafeBytes { bytes throws(BlockText.Damage) in
        try BlockText.text(
          parsed, of: UnsafeRawBufferPointer(rebasing: bytes.prefix(parsed.blockSize)), by: inflaters)
      }
      return BlockCache.Block(text: text, end: end)
    } catch let error where error is BlockText.Damage || error is BlockHeader.Problem {
      throw Damage(block: offset)
    }
  }
}
#endif
