/// What can be wrong with a ``MutantFileSystem``.
enum FileFault: String, CaseIterable, Sendable {
  /// A file is synchronized without any effect.
  case skipsSynchronize
  /// A directory is synchronized without any effect.
  case skipsDirectorySynchronize
  /// A failed synchronization of a file is passed over.
  case swallowsSynchronizeErrors
  /// A failed synchronization of a file is repeated, and the second one is believed.
  case repeatsFailedSynchronize
  /// A failed synchronization of a directory is passed over.
  case swallowsDirectoryErrors
  /// A file that is synchronized loses its last byte.
  case truncatesInsteadOfSynchronizing
  /// A file takes the place of another byte by byte.
  case renameNotAtomic
  /// A file that is to be replaced is removed first.
  case removesBeforeRename
  /// A failed rename is passed over.
  case swallowsRenameErrors
  /// Nothing is written, and success reported.
  case writesNothing
  /// What is written waits in memory until the file is synchronized.
  case writesLate
  /// A write that was cut short is reported as whole.
  case stopsAtShortWrite
  /// A write that was cut short is reported as failed.
  case failsAtShortWrite
  /// A failed write is reported as done.
  case swallowsWriteErrors
  /// A file is never made shorter.
  case ignoresTruncate
  /// A failed read is taken for the end of the file.
  case readErrorIsEnd
  /// What cannot be read ends the file, once something was read.
  case stopsAtShortRead
  /// A file that cannot be looked at is taken for missing.
  case errorIsMissing
  /// A file that is opened for writing is emptied.
  case emptiesOnOpening
  /// Every lock is given to everyone.
  case locksNothing
}
