import Larder
#if Compression
import LarderCompression
import LarderFiles

/// A reader of the blocks of one file, with a cache of the most recently read ones.
final class BlockReader: Sendable {
  /// An error that reports a damaged or missing block.
  struct Damage: Error {
    let block: Int64
  }

  /// The size of the first read, which most blocks do not exceed.
  private static let firstReadSize: Int64 = 8192

  private let file: any OpenStoreFile
  private let head: FileHead
  private let inflaters: StreamPool<ZlibInflater>
  private let cache: Locked<BlockCache>

  /// Creates a reader.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - head: The header of the file.
  ///   - inflaters: The streams that decompress the blocks.
  ///   - cacheSize: The maximum size of the cache, in bytes.
  init(_ file: any OpenStoreFile, _ head: FileHead, inflaters: StreamPool<ZlibInflater>, cacheSize: Int) {
    self.file = file
    self.head = head
    self.inflaters = inflaters
    cache = Locked(BlockCache(capacity: cacheSize))
  }

  /// The current size of the cache, in bytes.
  var cachedSize: Int { cache.withLock { $0.size } }

  /// Returns the block at an offset, from the cache or from the file.
  ///
  /// - Parameters:
  ///   - offset: The offset of the block in the file.
  ///   - isKept: A Boolean value that indicates whether to cache the block.
  /// - Throws: ``Damage``; ``FileError``.
  func block(at offset: Int64, isKept: Bool) throws -> Block {
    if let found = cache.withLock({ $0.block(at: offset) }) { return found }
    let block = try readBlock(at: offset)
    // Evicted blocks are released outside the lock.
    if isKept { _ = cache.withLock { $0.insert(block) } }
    return block
  }

  /// Returns the block at an offset, read from the file even if it is cached.
  ///
  /// - Parameters:
  ///   - offset: The offset of the block in the file.
  /// - Throws: ``Damage``; ``FileError``.
  func readBlock(at offset: Int64) throws -> Block {
    var bytes = try firstBytes(at: offset)
    let size = bytes.withUnsafeBytes { BlockFrame.size(at: $0) } ?? 0
    if size > bytes.count { bytes += try file.readAll(from: offset + Int64(bytes.count), upTo: offset + Int64(size)) }
    guard let block = try bytes.withUnsafeBytes({ try Block($0, salt: head.salt, at: offset, by: inflaters) }) else {
      throw Damage(block: offset)
    }
    return block
  }

  private func firstBytes(at offset: Int64) throws(FileError) -> [UInt8] {
    do throws(FileError) {
      return try file.readAll(from: offset, upTo: offset + BlockReader.firstReadSize)
    } catch {
      guard error.isDiskFailure else { throw error }
      // The unreadable bytes may belong to the next block. This many bytes state the size of this block.
      return try file.readAll(from: offset, upTo: offset + Int64(BlockFrame.headerSize))
    }
  }
}

/// A bounded cache of block texts with the clock eviction policy: the hand passes over a block once if it was read
/// since the hand last passed.
struct BlockCache {
  /// The approximate size of a slot in addition to its text, in bytes.
  private static let overhead = 96

  /// The maximum size of the cache, in bytes.
  let capacity: Int

  /// The current size of the cache, in bytes.
  private(set) var size = 0

  private var slots: [(block: Block, wasRead: Bool)] = []
  private var places: [Int64: Int] = [:]
  private var hand = 0

  /// Creates a cache.
  ///
  /// - Parameter capacity: The maximum size of the cache, in bytes, or 0 for no cache.
  init(capacity: Int) {
    self.capacity = capacity
  }

  /// Returns the block at an offset of the file, or `nil` if it is not cached.
  mutating func block(at offset: Int64) -> Block? {
    guard let place = places[offset] else { return nil }
    slots[place].wasRead = true
    return slots[place].block
  }

  /// Adds a block, and evicts others if there is not enough room.
  ///
  /// - Returns: The evicted blocks, so the caller can release them outside a lock.
  mutating func insert(_ block: Block) -> [Block] {
    let cost = BlockCache.cost(of: block)
    guard cost <= capacity, places[block.offset] == nil else { return [] }
    var removed: [Block] = []
    while size + cost > capacity {
      if hand >= slots.count { hand = 0 }
      if slots[hand].wasRead {
        slots[hand].wasRead = false
        hand += 1
      } else {
        removed.append(remove(at: hand))
      }
    }
    places[block.offset] = slots.count
    slots.append((block, wasRead: false))
    size += cost
    return removed
  }

  private mutating func remove(at place: Int) -> Block {
    let slot = slots[place]
    size -= BlockCache.cost(of: slot.block)
    places[slot.block.offset] = nil
    // The last slot moves to the free index.
    let last = slots.removeLast()
    if place < slots.count {
      slots[place] = last
      places[last.block.offset] = place
    }
    return slot.block
  }

  private static func cost(of block: Block) -> Int { block.text.count + overhead }
}
#endif
