import ExampleSupport

/// What the tests of all stores came to, in one round.
struct Report: Encodable {
  /// What was stored.
  let round: Round

  /// How many images.
  let imageCount: Int

  /// How many bytes they have together, one that is stored several times counted as often.
  let byteCount: Int

  /// What each store came to.
  var results: [CacheTestResult] = []

  /// Makes a report without results.
  init(round: Round, images: [Image]) {
    self.round = round
    imageCount = images.count
    byteCount = images.reduce(0) { $0 + $1.bytes.count }
  }
}

extension Report: CustomStringConvertible {
  /// The report as people read it: a title, and a row for each store.
  var description: String {
    var table = TextTable(alignments: [.left] + Array(repeating: .right, count: Step.allCases.count + 2))
    table.append([""] + Step.allCases.map(\.title) + ["items", "live after expiry"])
    for result in results {
      let times = Step.allCases.map { result.durations[$0].map(TextFormat.duration) ?? "" }
      table.append(
        [result.store] + times + [TextFormat.count(result.storedCount), TextFormat.count(result.liveCount)])
    }
    let count = TextFormat.count(imageCount)
    let title =
      switch round {
      case .oneImage: "One image \(count) times"
      case .differentImages: "\(count) different images"
      }
    return "\(title), \(TextFormat.bytes(Int64(byteCount)))\n\(table)"
  }
}
