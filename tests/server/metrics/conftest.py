"""Settings of the property tests: nothing here is timed, a busy machine must not fail them."""

import hypothesis

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
