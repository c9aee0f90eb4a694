import ExampleSupport

/// The median times of the same operation, done in two ways.
struct ComparedTimes {
  var name: String
  var time: Duration
  var otherTime: Duration

  /// The ratio of the other way's time to this one.
  var factor: Double { otherTime / time }

  /// Returns a table of several comparisons, with a header that names both ways.
  static func table(_ lines: [ComparedTimes], ways: (String, String)) -> TextTable {
    var table = TextTable(alignments: [.left, .right, .right, .right])
    table.append(["", ways.0, ways.1, "factor"])
    for line in lines {
      table.append([
        line.name, TextFormat.duration(line.time), TextFormat.duration(line.otherTime),
        TextFormat.factor(line.factor),
      ])
    }
    return table
  }
}
