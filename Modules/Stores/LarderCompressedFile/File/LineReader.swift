#if Compression
import Larder
import LarderCompression
import LarderFiles

/// A reader of lines in one file, which groups the lines of a block.
struct LineReader: Sendable {
  let blocks: BlockReader

  /// The name of the store, for errors.
  let store: String

  /// The offset of the block whose changes are unknown, so they may have affected any key; 0 if there isn't one.
  let unknownBlock: Int64

  /// Reads the lines of some keys.
  ///
  /// Each block is read once, in file order.
  ///
  /// - Parameters:
  ///   - findings: The keys, each with the information of the index.
  ///   - operation: The operation, for errors.
  ///   - isKept: A Boolean value that indicates whether to cache the blocks.
  ///   - use: A closure that receives a key and its line.
  /// - Returns: The results of `use` in the order of the keys, with `nil` for keys that are missing.
  /// - Throws: ``StoreError`` for the first key, in the given order, whose line is lost or damaged (`corrupted`) or
  ///   cannot be read (`ioFailed`); any error of `use`, for the first key for which it throws.
  func read<Result>(
    _ findings: [(key: StoreKey, finding: CompressedFileIndex.Finding)], during operation: StoreOperation, isKept: Bool,
    _ use: (StoreKey, ArraySlice<UInt8>) throws -> Result
  ) throws -> [Result?] {
    var results = [Result?](repeating: nil, count: findings.count)
    var first: (index: Int, error: any Error)?
    var found: [(index: Int, location: EntryLocation)] = []
    for (index, finding) in findings.enumerated() {
      switch finding.finding {
      case .missing: continue
      case .found(let location): found.append((index, location))
      case .lost(let block):
        first = (index, damageError(.only(finding.key), at: block, during: operation))
      }
      if first != nil { break }
    }
    if found.count > 1 { found.sort { $0.location.block < $1.location.block } }
    var last: Block?
    for (index, location) in found where index < first?.index ?? .max {
      let key = findings[index].key
      do {
        results[index] = try use(key, try line(at: location, &last, isKept: isKept))
      } catch let damage as BlockReader.Damage {
        first = (index, damageError(.only(key), at: damage.block, during: operation))
      } catch let error as FileError {
        first = (
          index, StoreError(error, during: operation, store: store, message: "the store's file could not be read")
        )
      } catch let error as ZlibError {
        first = (index, StoreError(error, during: operation, store: store))
      } catch {
        first = (index, error)
      }
    }
    if let first { throw first.error }
    return results
  }

  /// Reads one line.
  ///
  /// - Parameters:
  ///   - location: The location of the line.
  ///   - last: The block that was read last.
  ///   - isKept: A Boolean value that indicates whether to cache the blocks.
  /// - Throws: ``BlockReader/Damage``; ``FileError``.
  func line(
    at location: EntryLocation, _ last: inout Block?, isKept: Bool
  ) throws -> ArraySlice<UInt8> {
    if last?.offset != location.block {
      last = try blocks.block(at: location.block, isKept: isKept)
    }
    guard var block = last, location.textOffset <= block.text.count else {
      throw BlockReader.Damage(block: location.block)
    }
    let length = Int(location.length)
    let first = block.text[location.textOffset...].prefix(length)
    guard first.count < length else { return first }
    var line = Array(first)
    line.reserveCapacity(length)
    while line.count < length {
      let offset = block.end
      block = try blocks.block(at: offset, isKept: false)
      guard block.isContinuation, !block.text.isEmpty else { throw BlockReader.Damage(block: offset) }
      line.append(contentsOf: block.text.prefix(length - line.count))
    }
    return line[...]
  }

  /// Returns the error for keys that cannot be read because a block is, or was, damaged.
  ///
  /// - Parameters:
  ///   - keys: One key, or a range where it is unknown which keys exist.
  ///   - block: The offset of the block.
  ///   - operation: The operation.
  func damageError(_ keys: KeyRange, at block: Int64, during operation: StoreOperation) -> StoreError {
    StoreError(
      .corrupted, during: operation, store: store, key: keys.lowerBound,
      message: "the store's file is damaged at byte \(block); set the entry again, or restore it from a backup",
      underlying: DamagedBlockError(block: block, keys: keys, hasUnknownChanges: block == unknownBlock && block > 0))
  }
}

extension StoreFileConfiguration {
  /// Runs work with zlib, and converts its errors to errors of the store.
  func reportingZlibErrors<Result>(during operation: StoreOperation, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as ZlibError {
      throw StoreError(error, during: operation, store: name)
    }
  }
}

extension StoreError {
  /// Creates the error for a failed call of zlib, which fails only if there is not enough memory.
  init(_ error: ZlibError, during operation: StoreOperation, store: String) {
    self.init(
      .ioFailed, during: operation, store: store, message: "there is not enough memory for zlib",
      underlying: error, isRetryable: true)
  }
}
#endif
