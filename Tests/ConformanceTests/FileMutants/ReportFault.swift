/// What can be wrong with what a ``MisreportingStore`` tells of a failure, or shows.
enum ReportFault: String, CaseIterable, Sendable {
  /// The error of the file system comes through as it is.
  case throwsFileErrors
  /// That the disk is full is reported as any other failure.
  case reportsFullAsFailed
  /// A store whose closing failed is not closed.
  case keepsLockWhenClosingFails
  /// A scan gives its first entry twice.
  case givesFirstEntryTwice
  /// The count leaves out an entry.
  case countsOneLess
  /// Once something has failed, everything fails, even when the store is opened anew.
  case neverRecovers
}
