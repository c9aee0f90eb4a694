/// A fault of a ``MutantStore``, with one of the cases that must find it.
enum Fault: String, CaseIterable, Sendable {
  case dropsRemovals
  case ignoresLimit
  case limitOneTooMany
  case includesUpperBound
  case leavesOutLowerBound
  case lastKeyMissing
  case ignoresOrder
  case countsEverything
  case appliesOneByOne
  case losesLastChange
  case lastChangeFirst
  case keepsPartOfRefusedBatch
  case ignoresRangeRemovals
  case sortsMultiGet
  case dropsMissingSlots
  case foldsDuplicateKeys
  case storedNilIsMissing
  case foldsCase
  case foldsComposition
  case takesEmptyKey
  case takesLongKey
  case refusesLongestKey
  case updateNotAtomic
  case updateCommitsDiscarded
  case updateDiscardsCommitted
  case updateRunsTwice
  case updateTakesDuplicateKeys
  case updateRemovesUnassigned
  case answersWhenClosed
  case answersTrivialCallsWhenClosed
  case closesOnlyOnce
  case closesWithoutWaiting
  case ignoresCancellation
  case synchronizeHeedsCancellation
  case damagedIsMissing
  case damagedIsDeleted
  case damageHidesScan
  case forgetsOnClose
  case forgetsWithoutClose
  case errorsWithoutStore
  case errorsWithUnknownOutcome
  case takesNegativeLimit
  case givesStaleValues
  case composesText
  case includesKeyBelowLowerBound
  case leavesOutLastBelowUpperBound
  case limitBeforeReversing
  case repeatsEntryBetweenPages
  case skipsEntryBetweenPages
  case comparesSigned
  case removesUpperBoundToo
  case removesEverything
  case missingThrows
  case removalOfMissingThrows
  case swallowsEncodingErrors
  case swallowsErrorsOfApply
  case givesStaleMultiGet
  case readsKeyByKey
  case scansKeysInHalves
  case updateIgnoresPlainWrites
  case updateIgnoresRemovals
  case updateLosesLastKey
  case updateReadsEarly
  case acknowledgesBeforeWriting
  case resurrectsRemoved
  case opensTwice
  case keepsLock
  case truncatesText
  case emptyTextIsNil
  case takesBadArgumentsWhenClosed
  case takesBadArgumentsWhenReopened
  case losesWritesWhileClosing
  case checksCancellationAfterwards
  case checksCancellationBeforeClosed
  case showsKeyInMessage
  case countsWronglyInStatistics
  case verifiesNothing
  case compactingLosesAnEntry
  case maintainsWhenClosed
  case writesWhenReadOnly
  case losesAnEntryAbove4MiB
  case cutsScansAt10000
  case cutsMultiGetAt999
  case reportsBeforeTheCommit
  case reportsNoRangeRemovals
  case reportsNoUpdates
  case reportsUnassigned
  case hidesEqualAssignments
  case hidesEqualBatches

  /// The identity of a case that must find the fault.
  var detector: String {
    switch self {
    case .dropsRemovals: "4"
    case .ignoresLimit: "89b"
    case .limitOneTooMany: "89a"
    case .includesUpperBound: "85b"
    case .leavesOutLowerBound: "85a"
    case .lastKeyMissing: "82"
    case .ignoresOrder: "83"
    case .countsEverything: "84"
    case .appliesOneByOne: "80a"
    case .losesLastChange: "63"
    case .lastChangeFirst: "68"
    case .keepsPartOfRefusedBatch: "70a"
    case .ignoresRangeRemovals: "110"
    case .sortsMultiGet: "58"
    case .dropsMissingSlots: "58"
    case .foldsDuplicateKeys: "60"
    case .storedNilIsMissing: "11"
    case .foldsCase, .foldsComposition: "41"
    case .takesEmptyKey: "23"
    case .takesLongKey: "36a"
    case .refusesLongestKey: "36d"
    case .updateNotAtomic: "214"
    case .updateCommitsDiscarded: "208"
    case .updateDiscardsCommitted: "206"
    case .updateRunsTwice: "209"
    case .updateTakesDuplicateKeys: "210a"
    case .updateRemovesUnassigned: "211b"
    case .answersWhenClosed: "116"
    case .answersTrivialCallsWhenClosed: "59"
    case .closesOnlyOnce: "121"
    case .closesWithoutWaiting: "117"
    case .ignoresCancellation: "123"
    case .synchronizeHeedsCancellation: "237"
    case .damagedIsMissing: "51a"
    case .damagedIsDeleted: "230"
    case .damageHidesScan: "229"
    case .forgetsOnClose: "118a"
    case .forgetsWithoutClose: "118e"
    case .errorsWithoutStore: "233a"
    case .errorsWithUnknownOutcome: "70a"
    case .takesNegativeLimit: "89d"
    case .givesStaleValues: "3"
    case .composesText: "48"
    case .includesKeyBelowLowerBound: "85a"
    case .leavesOutLastBelowUpperBound: "85b"
    case .limitBeforeReversing: "89b"
    case .repeatsEntryBetweenPages: "104"
    case .skipsEntryBetweenPages: "107"
    case .comparesSigned: "83"
    case .removesUpperBoundToo: "111"
    case .removesEverything: "111"
    case .missingThrows: "1"
    case .removalOfMissingThrows: "5"
    case .swallowsEncodingErrors: "50"
    case .swallowsErrorsOfApply: "70a"
    case .givesStaleMultiGet: "63"
    case .readsKeyByKey: "80a"
    case .scansKeysInHalves: "80b"
    case .updateIgnoresPlainWrites: "215b"
    case .updateIgnoresRemovals: "207"
    case .updateLosesLastKey: "206"
    case .updateReadsEarly: "214"
    case .acknowledgesBeforeWriting: "118e"
    case .resurrectsRemoved: "118a"
    case .opensTwice: "126"
    case .keepsLock: "118a"
    case .truncatesText: "48"
    case .emptyTextIsNil: "45"
    case .takesBadArgumentsWhenClosed: "116a"
    case .takesBadArgumentsWhenReopened: "115"
    case .losesWritesWhileClosing: "117a"
    case .checksCancellationAfterwards: "236a"
    case .checksCancellationBeforeClosed: "116b"
    case .showsKeyInMessage: "234a"
    case .countsWronglyInStatistics, .compactingLosesAnEntry: "243"
    case .verifiesNothing: "244"
    case .maintainsWhenClosed: "243a"
    case .writesWhenReadOnly: "245"
    case .losesAnEntryAbove4MiB: "247"
    case .cutsScansAt10000, .cutsMultiGetAt999: "249"
    case .reportsBeforeTheCommit: "261"
    case .reportsNoRangeRemovals: "260"
    case .reportsNoUpdates: "262"
    case .reportsUnassigned: "260a"
    case .hidesEqualAssignments, .hidesEqualBatches: "260b"
    }
  }
}
