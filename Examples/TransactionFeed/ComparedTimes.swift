import ExampleSupport

/// The median times of the same thing, done in two ways.
struct ComparedTimes {
  var name: String
  var time: Duration
  var otherTime: Duration

  /// How many times as long the other way takes.
  var factor: Double { otherTime / time }

  /// A table of several, with a line above that says which way is which.
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
