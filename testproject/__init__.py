"""The Django project that is deployed in many ways: the same views and consumers in each."""
