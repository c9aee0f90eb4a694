import Larder

/// Commits the calls of a group together, and in parts if one of them makes the group fail.
///
/// A part that fails without changing anything is split into halves that are committed in order, down to single calls.
/// One bad call among a thousand costs about twenty commits. If the error may concern every call, as a full disk does,
/// parts are no longer split after several calls in a row have failed alone. Each remaining part is tried once as a
/// whole.
struct GroupCommit {
  /// The parts that failed, in order, each with its error.
  private(set) var failures: [(part: Range<Int>, error: any Error)] = []

  private let singleFailureLimit: (_ isRetryable: Bool) -> Int
  private let isolatesRetryableErrors: Bool
  private var parts: [Range<Int>]  // The next one is the last.
  private var singleFailureCount = 0

  /// Commits a group.
  ///
  /// - Parameters:
  ///   - count: The number of calls in the group.
  ///   - singleFailureLimit: A closure that returns the number of calls in a row that must fail alone before an unclear
  ///     error is assumed to concern every call, given whether a retry may mend the error. With `Int.max`, which costs
  ///     up to two commits per call, a good call never fails together with others because of such an error.
  ///   - isolatesRetryableErrors: A Boolean value that indicates whether an error that a retry may mend, and that
  ///     concerns every call, is unclear instead, because it has lasted so long that a single call may cause it.
  ///     Defaults to `false`.
  ///   - commit: A closure that commits some of the calls together and returns the error if that fails.
  init(
    count: Int, singleFailureLimit: @escaping (_ isRetryable: Bool) -> Int, isolatesRetryableErrors: Bool = false,
    commit: (Range<Int>) async -> (any Error)?
  ) async {
    self.singleFailureLimit = singleFailureLimit
    self.isolatesRetryableErrors = isolatesRetryableErrors
    parts = count > 0 ? [0..<count] : []
    while let part = parts.popLast() {
      if let error = await commit(part) {
        handle(error, of: part)
      } else {
        singleFailureCount = 0
      }
    }
  }

  private mutating func handle(_ error: any Error, of part: Range<Int>) {
    let storeError = error as? StoreError
    let isRetryable = storeError?.isRetryable ?? false
    var concern = storeError?.concern ?? .everyone
    if concern == .everyone && isRetryable && isolatesRetryableErrors { concern = .unclear }
    let isSplit =
      concern == .oneChange || concern == .unclear && singleFailureCount < singleFailureLimit(isRetryable)
    if part.count > 1, isSplit {
      let middle = part.lowerBound + part.count / 2
      parts.append(middle..<part.upperBound)
      parts.append(part.lowerBound..<middle)
      return
    }
    if part.count == 1 { singleFailureCount += 1 }
    failures.append((part, part.count == 1 ? error : storeError?.shared() ?? error))
    guard concern == .everyone else { return }
    // The remaining calls are not tried, so they have changed nothing.
    while let rest = parts.popLast() {
      failures.append((rest, storeError?.shared(outcome: .nothingChanged) ?? error))
    }
  }
}

extension StoreError {
  /// The writes of a group that an error concerns.
  enum Concern {
    /// One bad change. The others may succeed.
    case oneChange
    /// One change or all of them. Nothing was changed, so it is safe to find out.
    case unclear
    /// Every change. After a failed sync, for example, the state of the disk is unknown.
    case everyone
  }

  /// The writes of a group that this error concerns.
  var concern: Concern {
    guard outcome == .nothingChanged else { return .everyone }
    switch code {
    case .invalidKey, .invalidArgument, .valueTooLarge, .encodingFailed: return .oneChange
    case .ioFailed, .closed: return .everyone
    case .full: return .unclear
    // An error that names a key concerns the change to it.
    case _ where key != nil: return .oneChange
    case .locked, .notPermitted, .timedOut, .conflict, .corrupted, .undecodable: return .everyone
    // The codes are an open set.
    default: return .unclear
    }
  }

  /// Returns the error for a caller whose write shared a commit with others.
  ///
  /// It does not name any of their keys.
  ///
  /// - Parameter outcome: The outcome. It says whether anything may have been changed. Defaults to that of this error.
  func shared(outcome: Outcome? = nil) -> StoreError {
    StoreError(
      code, during: operation, store: store, message: message, underlying: underlying, isRetryable: isRetryable,
      outcome: outcome ?? self.outcome)
  }
}
