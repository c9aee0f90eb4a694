#if Compression
import Larder

/// What the blocks of a file are.
enum FileFormat: Equatable, Sendable {
  /// Version 1, which is read only.
  case version1
  /// The present version.
  ///
  /// - Parameters:
  ///   - head: The head of the file.
  ///   - isWhole: Whether the head and the mark of the end stand where they belong; else the file is never marked closed.
  case version2(head: FileHead, isWhole: Bool)
}

/// What was found in a file.
struct FoundFile {
  /// A block that no notes are about.
  struct UnnotedBlock: Sendable {
    var offset: Int64
    /// Where it ends, and what it has changed, if it is damaged and notes at the end of the file have told that.
    var lost: (end: Int64, changes: [Change<Void>])?
  }

  /// A part of a file that is not as it was written.
  struct Remark: Equatable {
    var offset: Int64
    var message: String
  }

  var format: FileFormat
  var codecName: String?
  var index = CompressedFileIndex()

  /// Where blocks are damaged.
  var damage: [Int64] = []
  /// What else is wrong.
  var remarks: [Remark] = []

  /// Where the next block goes.
  var end: Int64 = 0
  /// Where the base ends, or the head without a base.
  var baseEnd: Int64 = 0
  /// The bytes of text up to there.
  var baseTextSize: Int64 = 0
  var blockCount = 0
  var textSize: Int64 = 0
  /// The bytes of the lines that are changes.
  var changeSize: Int64 = 0
  /// The number of the last batch.
  var lastBatch: UInt64 = 0

  /// Whether it was closed, so that all of it is known to be durable.
  var isClosed = false
  /// The bytes behind ``end`` of a batch that never happened.
  var tornSize: Int64 = 0
  /// The bytes within the file that no store has written.
  var foreignSize: Int64 = 0

  /// From where on no notes are about the blocks that stay in the file, and which blocks have changes there.
  var notesEnd: Int64 = 0
  var unnoted: ArraySlice<UnnotedBlock> = []
}

/// What makes a file unusable.
enum FileProblem: Error {
  /// It is no gzip file.
  case notGzip
  /// It is a gzip file, but not one in blocks.
  case plainGzip
  /// It is in blocks, but none of a store; with what it is, if that is known.
  case foreignBlocks(String?)
  /// It is in a version of the format that came later.
  case newerVersion(Int)
  /// It is damaged so that it cannot be used.
  case damaged(at: Int64, reason: String)
}
#endif
