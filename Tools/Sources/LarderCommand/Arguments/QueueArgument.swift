import ArgumentParser

/// The queue that a verb is about.
struct QueueArgument: ParsableArguments {
  @Argument(help: "The queue, like queue:outbox: the scheme, a colon and the path of its folder.")
  var url: String
  @OptionGroup var opening: OpeningOptions

  /// What the verb needs to open it.
  var target: StoreTarget { opening.target(url) }
}
