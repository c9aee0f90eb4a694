import ArgumentParser
import Larder
import StoreAccess

/// A value on the command line or on standard input.
struct ValueArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The value, or - to read it from standard input.", valueName: "json"))
  var value: String

  /// Reads the value as JSON.
  ///
  /// - Throws: ``CommandFailure`` if the value is not JSON or cannot be read.
  func json() throws -> JSONText {
    try value == ByteInput.standardInputPath ? valueFromStandardInput() : valueFromArgument()
  }

  /// Reads the value as bytes, unchanged.
  ///
  /// - Throws: ``CommandFailure`` if the value cannot be read.
  func bytes() throws -> [UInt8] {
    guard value == ByteInput.standardInputPath else { return Array(value.utf8) }
    var input = try ByteInput(ByteInput.standardInputPath)
    return try input.readToEnd()
  }

  private func valueFromArgument() throws -> JSONText {
    do {
      return try JSONText(value)
    } catch let error as JSONSyntaxError {
      throw CommandFailure(
        .usage, "the value is not JSON: \(error)", advice: "Text needs quotes, as in '\"some text\"'.")
    }
  }

  private func valueFromStandardInput() throws -> JSONText {
    var input = try ByteInput(ByteInput.standardInputPath)
    do {
      return try JSONText(try input.readToEnd())
    } catch let error as JSONSyntaxError {
      throw CommandFailure(.badData, "standard input is not JSON: \(error)", advice: "Nothing was changed.")
    }
  }
}
